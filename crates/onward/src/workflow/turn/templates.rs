//! The templates that an engine has in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use onward_store::Store;

use super::program::Program;
use crate::error::{Error, Result};
use crate::workflow::library::stored_file;
use crate::workflow::template::{Template, TemplateFile, TemplateHash};

/// The number of templates from the store that stay read, and of programs that stay compiled:
/// templates in one environment each.
const CACHED: usize = 256;

/// The templates of an engine: those that the program registered, and those that runs needed last.
pub(crate) struct Templates(Mutex<TemplateCache>);

struct TemplateCache {
    /// The registered files, by the name of the template.
    registered: BTreeMap<String, Arc<TemplateFile>>,
    /// The registered files by their hash. A run may need a file that another one of its name has
    /// replaced since.
    files: HashMap<TemplateHash, Arc<TemplateFile>>,
    /// The registered files that the store has.
    stored: HashSet<TemplateHash>,
    /// The templates from the store that were needed last.
    read: LruCache<TemplateHash, Arc<TemplateFile>>,
    programs: LruCache<(TemplateHash, Option<String>), Arc<Program>>,
}

impl Default for Templates {
    fn default() -> Self {
        let cached = NonZeroUsize::new(CACHED).unwrap_or(NonZeroUsize::MIN);
        // `LruCache::new` would reserve memory for the full capacity in each engine.
        let (mut read, mut programs) = (LruCache::unbounded(), LruCache::unbounded());
        read.resize(cached);
        programs.resize(cached);
        Self(Mutex::new(TemplateCache {
            registered: BTreeMap::new(),
            files: HashMap::new(),
            stored: HashSet::new(),
            read,
            programs,
        }))
    }
}

impl std::fmt::Debug for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Templates").finish_non_exhaustive()
    }
}

impl Templates {
    fn known(&self) -> MutexGuard<'_, TemplateCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file. It replaces the one of the same name for new runs.
    pub(crate) fn register(&self, file: Arc<TemplateFile>) {
        let mut known = self.known();
        known.files.insert(file.hash(), Arc::clone(&file));
        known.registered.insert(file.template().name.clone(), file);
    }

    /// Returns the registered file of a hash, unless the store has it.
    pub(crate) fn unstored(&self, hash: TemplateHash) -> Option<Arc<TemplateFile>> {
        let known = self.known();
        known.files.get(&hash).filter(|_| !known.stored.contains(&hash)).cloned()
    }

    /// Remembers that the store has a file.
    pub(crate) fn set_stored(&self, hash: TemplateHash) {
        self.known().stored.insert(hash);
    }

    /// Returns true if the engine has a registered template.
    pub(crate) fn has_some(&self) -> bool {
        !self.known().registered.is_empty()
    }

    /// Returns the registered file of a name, in the version that a label selects.
    pub(crate) fn named(&self, name: &str, version: Option<&str>) -> Option<Arc<TemplateFile>> {
        let file = self.known().registered.get(name).cloned()?;
        version.is_none_or(|version| file.label() == version).then_some(file)
    }

    /// Returns the file of a hash, from the engine or from the store; `None` if neither has it.
    ///
    /// # Errors
    /// The store's error; `is_invalid` if this version cannot read a stored template.
    pub(crate) async fn file(&self, store: &dyn Store, hash: TemplateHash) -> Result<Option<Arc<TemplateFile>>> {
        let known = {
            let mut known = self.known();
            let registered = known.files.get(&hash).cloned();
            registered.or_else(|| known.read.get(&hash).cloned())
        };
        if known.is_some() {
            return Ok(known);
        }
        let file = stored_file(store, hash).await?.map(Arc::new);
        if let Some(file) = &file {
            self.known().read.put(hash, Arc::clone(file));
        }
        Ok(file)
    }

    /// Returns the program of a template in an environment, or `None` if neither the engine nor the
    /// store has the template.
    ///
    /// # Errors
    /// The store's error; `is_invalid` if the template has no such environment.
    pub(crate) async fn program(
        &self,
        store: &dyn Store,
        hash: TemplateHash,
        environment: Option<&str>,
    ) -> Result<Option<Arc<Program>>> {
        let key = (hash, environment.map(str::to_owned));
        if let Some(program) = self.known().programs.get(&key) {
            return Ok(Some(Arc::clone(program)));
        }
        let Some(file) = self.file(store, hash).await? else { return Ok(None) };
        let source = self.known().files.get(&hash).cloned();
        let program = Arc::new(compile(&file, environment, source)?);
        self.known().programs.put(key, Arc::clone(&program));
        Ok(Some(program))
    }
}

/// Compiles a template in an environment.
///
/// # Errors
/// `is_invalid` if there is no such environment, or a schema cannot be compiled.
fn compile(file: &TemplateFile, environment: Option<&str>, source: Option<Arc<TemplateFile>>) -> Result<Program> {
    Program::new(in_environment(file, environment)?.clone(), source)
}

/// Returns a template in an environment.
///
/// # Errors
/// `is_invalid` if there is no such environment.
pub(crate) fn in_environment<'f>(file: &'f TemplateFile, environment: Option<&str>) -> Result<&'f Template> {
    match environment {
        None => Ok(file.template()),
        Some(name) => file.in_environment(name).ok_or_else(|| no_environment(file, name)),
    }
}

/// Returns the name of a template as a step refers to it.
pub(crate) fn reference(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name}@{version}"))
}

fn no_environment(file: &TemplateFile, name: &str) -> Error {
    let known: Vec<&str> = file.environments().collect();
    let template = &file.template().name;
    Error::invalid(match &known[..] {
        [] => format!("the template `{template}` has no environments, and `{name}` was asked for; leave it out"),
        known => format!("the template `{template}` has no environment `{name}`; there are {}", known.join(", ")),
    })
}
