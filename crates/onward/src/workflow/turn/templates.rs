//! The templates that an engine has in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use onward_store::Store;

use super::program::Program;
use crate::error::{Error, Result};
use crate::workflow::library::stored_file;
use crate::workflow::template::{TemplateFile, TemplateHash};

/// The number of programs that stay compiled: templates in one environment each.
const COMPILED: usize = 256;

/// The templates of an engine: those that the program registered, and those that runs needed last.
pub(crate) struct Templates(Mutex<Known>);

struct Known {
    /// The registered files, by the name of the template.
    registered: BTreeMap<String, Arc<TemplateFile>>,
    /// The registered files by their hash. A run may need a file that another one of its name has
    /// replaced since.
    files: HashMap<TemplateHash, Arc<TemplateFile>>,
    /// The registered files that the store has.
    stored: HashSet<TemplateHash>,
    programs: LruCache<(TemplateHash, Option<String>), Arc<Program>>,
}

impl Default for Templates {
    fn default() -> Self {
        let compiled = NonZeroUsize::new(COMPILED).unwrap_or(NonZeroUsize::MIN);
        let programs = LruCache::new(compiled);
        Self(Mutex::new(Known { registered: BTreeMap::new(), files: HashMap::new(), stored: HashSet::new(), programs }))
    }
}

impl std::fmt::Debug for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Templates").finish_non_exhaustive()
    }
}

impl Templates {
    fn known(&self) -> MutexGuard<'_, Known> {
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

    /// Returns the templates that a run pins: those of its `workflow` steps, and of the runs below.
    ///
    /// # Errors
    /// `is_invalid` if the engine does not have one of them.
    pub(crate) fn pins(&self, file: &TemplateFile) -> Result<BTreeMap<String, TemplateHash>> {
        let mut pins = BTreeMap::new();
        let mut unread = vec![Arc::new(file.clone())];
        while let Some(file) = unread.pop() {
            for (name, version) in file.template().workflows() {
                let reference = reference(name, version);
                if pins.contains_key(&reference) {
                    continue;
                }
                let found = self.named(name, version).ok_or_else(|| missing(&reference, &file.template().name))?;
                pins.insert(reference, found.hash());
                unread.push(found);
            }
        }
        Ok(pins)
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
        let registered = self.known().files.get(&hash).cloned();
        let file = match registered {
            Some(file) => file,
            None => match stored_file(store, hash).await? {
                Some(file) => Arc::new(file),
                None => return Ok(None),
            },
        };
        let program = Arc::new(compile(&file, environment)?);
        self.known().programs.put(key, Arc::clone(&program));
        Ok(Some(program))
    }
}

/// Compiles a template in an environment.
///
/// # Errors
/// `is_invalid` if there is no such environment, or a schema cannot be compiled.
pub(crate) fn compile(file: &TemplateFile, environment: Option<&str>) -> Result<Program> {
    let template = match environment {
        None => file.template(),
        Some(name) => file.in_environment(name).ok_or_else(|| no_environment(file, name))?,
    };
    Program::new(template.clone())
}

/// Returns the name of a template as a step refers to it.
pub(super) fn reference(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name}@{version}"))
}

fn missing(reference: &str, above: &str) -> Error {
    Error::invalid(format!(
        "this engine has no workflow `{reference}`, which a step of `{above}` runs; add its template with `add_workflow`"
    ))
}

fn no_environment(file: &TemplateFile, name: &str) -> Error {
    let known: Vec<&str> = file.environments().collect();
    let template = &file.template().name;
    Error::invalid(match &known[..] {
        [] => format!("the template `{template}` has no environments, and `{name}` was asked for; leave it out"),
        known => format!("the template `{template}` has no environment `{name}`; there are {}", known.join(", ")),
    })
}
