//! Names of Rust, made from names of templates and schemas.

use std::collections::BTreeSet;

/// The words of Rust that are no names; the ones that `r#` does not help are in [`PATHS`].
const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while",
];

/// The words that name parts of paths.
const PATHS: [&str; 4] = ["crate", "self", "super", "_"];

/// The types that generated code uses.
const USED: [&str; 14] = [
    "Arc",
    "BTreeMap",
    "Context",
    "Deserialize",
    "Engine",
    "Failure",
    "Future",
    "Option",
    "Result",
    "RunStart",
    "Self",
    "Serialize",
    "String",
    "Task",
];

/// Returns the name of a function, a field or a module.
pub(super) fn snake(text: &str) -> String {
    let words = words(text);
    let name = if words.is_empty() { "field".to_owned() } else { words.join("_") };
    let name = if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name };
    match name.as_str() {
        name if PATHS.contains(&name) => format!("{name}_"),
        name if KEYWORDS.contains(&name) => format!("r#{name}"),
        name => name.to_owned(),
    }
}

/// Returns the name of a type or a variant.
pub(super) fn pascal(text: &str) -> String {
    let mut name = String::new();
    for word in words(text) {
        let mut characters = word.chars();
        name.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(characters.as_str());
    }
    if name.is_empty() {
        return "Type".to_owned();
    }
    let begins_with_digit = name.starts_with(|first: char| first.is_ascii_digit());
    let is_used = USED.contains(&name.as_str()) || name == "Value" || name == "Vec" || name == "Box";
    match (begins_with_digit, is_used) {
        (true, _) => format!("N{name}"),
        (_, true) => format!("{name}Type"),
        _ => name,
    }
}

/// Returns a name that is not taken, and takes it: the name itself, or with a number.
pub(super) fn unique(name: String, taken: &mut BTreeSet<String>) -> String {
    if taken.insert(name.clone()) {
        return name;
    }
    let numbered = (2..).map(|number: u32| format!("{}_{number}", name.trim_start_matches("r#")));
    let free = numbered.into_iter().find(|name| taken.insert(name.clone()));
    free.unwrap_or(name)
}

/// Returns the words of a name in small letters: `order.Paid-out` has three.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for character in text.chars() {
        let begins = character.is_ascii_uppercase() && was_small;
        if begins || !character.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if character.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(character.to_ascii_lowercase());
        }
        was_small = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_rust() {
        let names = ["stock.reserve", "orderId", "type", "self", "2nd", "", "Äpfel", "a--b"];
        let expected = ["stock_reserve", "order_id", "r#type", "self_", "_2nd", "field", "pfel", "a_b"];
        assert_eq!(names.map(snake), expected);
        let expected = ["StockReserve", "OrderId", "Type", "SelfType", "N2nd", "Type", "Pfel", "AB"];
        assert_eq!(names.map(pascal), expected);
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        let mut taken = BTreeSet::new();
        let names = ["r#type", "r#type", "a"].map(|name| unique(name.to_owned(), &mut taken));
        assert_eq!(names, ["r#type", "type_2", "a"]);
    }
}
