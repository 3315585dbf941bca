//! Patterns of `matches`, whose time is linear in the text and counted.
//!
//! The library's ready-made matcher has a bound on memory, not on time: within 64 KiB, a pattern
//! such as `[ab]*a[ab]{500}x` takes 4 µs for each byte of a text, 2 000 times the usual. So the two
//! methods below it are used here. An automaton that is built on the way takes the same time for
//! each byte, as long as its states fit into memory. Where they do not, all states are followed at
//! once, for which the evaluation pays by their number.

use std::sync::OnceLock;

use regex_automata::Input;
use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};
use regex_syntax::ast::parse::ParserBuilder;

use super::bounds::{EXPRESSION_DEPTH, OPERATIONS_PER_PATTERN_BYTE, PATTERN_BYTES, PATTERN_COMPILED, PATTERN_STATES};
use super::budget::{Exhausted, Meter};
use super::classes::with_ascii_classes;
use super::shown::Excerpt;

/// The bytes of text for which following one state costs an operation.
const BYTES_PER_FOLLOWED_STATE: u64 = 32;

/// The bytes of built states that cost an operation.
const BUILT_BYTES_PER_OPERATION: usize = 32;

/// A pattern whose syntax is right. It is compiled when it is first used.
#[derive(Debug)]
pub(super) struct Pattern {
    source: String,
    compiled: OnceLock<Result<Compiled, String>>,
}

#[derive(Debug)]
struct Compiled {
    automaton: DFA,
    simulation: PikeVM,
}

/// The states that the searches of one evaluation have built.
pub(super) struct Built(dfa::Cache);

/// The reason why a search has no result.
pub(super) enum SearchFault {
    Exhausted,
    Pattern(String),
}

impl From<Exhausted> for SearchFault {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

impl Pattern {
    /// Checks the syntax of a pattern.
    pub(super) fn read(source: &str) -> Result<Self, String> {
        if source.len() > PATTERN_BYTES {
            return Err(format!("the pattern is longer than {PATTERN_BYTES} bytes"));
        }
        let nesting = u32::try_from(EXPRESSION_DEPTH).unwrap_or(u32::MAX);
        let tree = ParserBuilder::new().nest_limit(nesting).build().parse(source);
        let tree = tree.map_err(|error| format!("`{}` is not a pattern: {}", Excerpt(source), error.kind()))?;
        Ok(Self { source: with_ascii_classes(source, &tree), compiled: OnceLock::new() })
    }

    /// Searches a text for the pattern. `built` is what earlier searches of the same evaluation
    /// left; if it is empty, compiling is paid for, even if another evaluation has done it: so an
    /// evaluation always costs the same.
    pub(super) fn is_in(
        &self,
        text: &str,
        built: &mut Option<Built>,
        meter: &mut Meter<'_>,
    ) -> Result<bool, SearchFault> {
        if built.is_none() {
            meter.charge(OPERATIONS_PER_PATTERN_BYTE * self.source.len() as u64)?;
        }
        let compiled = self.compiled.get_or_init(|| compile(&self.source)).as_ref();
        let compiled = compiled.map_err(|message| SearchFault::Pattern(message.clone()))?;
        let cache = match built {
            Some(Built(cache)) => cache,
            None => {
                meter.charge_text(compiled.simulation.get_nfa().memory_usage())?;
                &mut built.insert(Built(compiled.automaton.create_cache())).0
            }
        };
        meter.charge_text(text.len())?;
        Ok(compiled.search(text, cache, meter)?)
    }
}

impl Compiled {
    fn search(&self, text: &str, cache: &mut dfa::Cache, meter: &mut Meter<'_>) -> Result<bool, Exhausted> {
        let input = Input::new(text).earliest(true);
        let before = cache.memory_usage();
        let found = self.automaton.try_search_fwd(cache, &input);
        meter.charge_elements(cache.memory_usage().saturating_sub(before) / BUILT_BYTES_PER_OPERATION)?;
        if let Ok(found) = found {
            return Ok(found.is_some());
        }
        // The states did not fit. They are dropped, so that a search of another text can succeed.
        cache.reset(&self.automaton);
        let states = self.simulation.get_nfa().states().len() as u64;
        meter.charge((text.len() as u64).saturating_mul(states) / BYTES_PER_FOLLOWED_STATE)?;
        Ok(self.simulation.is_match(&mut pikevm::Cache::new(&self.simulation), input))
    }
}

fn compile(source: &str) -> Result<Compiled, String> {
    let wrong = |problem: String| format!("`{}` is not a pattern: {problem}", Excerpt(source));
    let tree = regex_syntax::ParserBuilder::new().utf8(false).build().parse(source).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => wrong(error.kind().to_string()),
        regex_syntax::Error::Translate(error) => wrong(error.kind().to_string()),
        error => wrong(error.to_string()),
    })?;
    let config = Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(PATTERN_COMPILED));
    let nfa = Compiler::new().configure(config).build_from_hir(&tree).map_err(|error| match error.size_limit() {
        Some(_) => format!("the pattern `{}` is too large; repeat less in it", Excerpt(source)),
        None => wrong(error.to_string()),
    })?;
    build(nfa).map_err(wrong)
}

fn build(nfa: NFA) -> Result<Compiled, String> {
    let config =
        DFA::config().skip_cache_capacity_check(true).cache_capacity(PATTERN_STATES).minimum_cache_clear_count(Some(0));
    let automaton = DFA::builder().configure(config).build_from_nfa(nfa.clone()).map_err(|error| error.to_string())?;
    let simulation = PikeVM::new_from_nfa(nfa).map_err(|error| error.to_string())?;
    Ok(Compiled { automaton, simulation })
}
