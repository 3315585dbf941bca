//! Reading a template from a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::build;
use super::canonical::{self, TemplateHash};
use super::checks::Checks;
use super::errors::{Errors, TemplateErrors};
use super::model::Template;
use super::outline::Outline;
use super::overlay;
use super::shape::Shape;
use super::source::{Position, Source};
use super::steps;
use super::yaml::{self, Node, Value};

/// A template that was read from a file without errors, in each of its environments.
#[derive(Debug, Clone)]
pub struct TemplateFile {
    file: Arc<str>,
    base: Variant,
    environments: BTreeMap<String, Variant>,
    canonical: String,
    hash: TemplateHash,
}

/// The template in one environment, with the places of its values.
#[derive(Debug, Clone)]
struct Variant {
    template: Template,
    tree: Node,
}

impl TemplateFile {
    /// Reads the text of a template. `file` is its name, for errors and for a template without
    /// `name`.
    ///
    /// # Errors
    /// All errors of the file, each with its place.
    pub fn read(file: &str, text: &str) -> Result<Self, TemplateErrors> {
        let source = Source::new(file, text);
        let mut errors = Errors::new(&source);
        let read = Self::read_all(&mut errors);
        errors.end(read)
    }

    fn read_all(errors: &mut Errors<'_>) -> Option<Self> {
        let file = errors.source().name().clone();
        let root = yaml::load(errors)?;
        let root = steps::normalise(root, errors)?;
        let base = Variant::read(root.clone(), errors);
        let environments = read_environments(&root, errors);
        let canonical = canonical::write(&root);
        let hash = TemplateHash::of(&canonical);
        Some(Self { file, base: base?, environments: environments?, canonical, hash })
    }

    /// Returns the template as it is without an environment.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.base.template
    }

    /// Returns the names of the environments, sorted.
    pub fn environments(&self) -> impl Iterator<Item = &str> {
        self.environments.keys().map(String::as_str)
    }

    /// Returns the template as it is in an environment.
    #[must_use]
    pub fn in_environment(&self, name: &str) -> Option<&Template> {
        self.environments.get(name).map(|variant| &variant.template)
    }

    /// Returns the label of this content: `version`, or the first 12 digits of the hash.
    #[must_use]
    pub fn label(&self) -> String {
        self.template().version.clone().unwrap_or_else(|| self.hash.label())
    }

    /// Returns the canonical form: JSON that has the same meaning as the file, environments
    /// included. It can be read as a file.
    ///
    /// Comments, layout and the order of steps do not change it.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Returns the canonical form of the template in an environment, without `environments`.
    /// Without an environment it is [`canonical`](Self::canonical).
    pub(crate) fn canonical_in(&self, environment: Option<&str>) -> Option<String> {
        match environment {
            None => Some(self.canonical.clone()),
            Some(name) => self.environments.get(name).map(|variant| canonical::write(&variant.tree)),
        }
    }

    /// Returns the hash of the canonical form.
    #[must_use]
    pub fn hash(&self) -> TemplateHash {
        self.hash
    }

    /// Returns the file and the place of a value in it. The path has the keys and, for lists, the
    /// numbers that lead to it from the template: `["steps", "mail", "with", "to"]`.
    #[must_use]
    pub fn place(&self, environment: Option<&str>, path: &[&str]) -> Option<(Arc<str>, Position)> {
        let variant = environment.map_or(Some(&self.base), |name| self.environments.get(name))?;
        let found = path.iter().try_fold(&variant.tree, |node, part| match &node.value {
            Value::List(items) => items.get(part.parse::<usize>().ok()?),
            _ => node.get(part),
        })?;
        Some((self.file.clone(), found.span.start))
    }
}

impl Variant {
    /// Checks a template in its normal form, and builds it if there are no errors at all.
    fn read(tree: Node, errors: &mut Errors<'_>) -> Option<Self> {
        let shaped = Shape::check(&tree, errors);
        let outline = Outline::read(&tree, &shaped.unclear, errors);
        let graph = outline.graph(errors);
        Checks { root: &tree, outline: &outline, graph: graph.as_ref() }.check(&shaped.uses, errors);
        if !errors.is_empty() {
            return None;
        }
        let template = build::template(&tree, &outline, graph?);
        template.map(|template| Self { template, tree })
    }
}

/// Returns the template as it is without an environment.
fn without_environments(root: &Node) -> Node {
    let others = root.entries().iter().filter(|entry| &*entry.key != "environments").cloned().collect();
    Node::new(root.span, Value::Map(Arc::new(others)))
}

/// Reads the template in each environment. Faults that it has without an environment too are
/// reported once.
fn read_environments(root: &Node, errors: &mut Errors<'_>) -> Option<BTreeMap<String, Variant>> {
    let base = without_environments(root);
    let is_clean = errors.is_empty();
    let mut environments = BTreeMap::new();
    for environment in root.get("environments").map(Node::entries).unwrap_or_default() {
        let changed = overlay::apply(&base, environment, errors);
        if is_clean {
            errors.for_environment(&environment.key);
            let variant = changed.and_then(|changed| Variant::read(changed, errors));
            errors.for_all_environments();
            environments.extend(variant.map(|variant| (environment.key.to_string(), variant)));
        }
    }
    Some(environments)
}
