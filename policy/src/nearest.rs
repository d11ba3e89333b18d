//! Names a person may have meant.

/// A name that is not in a closed list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{given}`{}", hint(.nearest.as_deref(), .known))]
pub struct UnknownName {
    /// What kind of name: `mode`, `guarantee`, `key` …
    pub what: &'static str,
    pub given: String,
    /// Close enough to be offered.
    pub nearest: Option<String>,
    pub known: Vec<String>,
}

fn hint(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(name) => format!("; did you mean `{name}`?"),
        None => format!("; known: {}", known.join(", ")),
    }
}

/// The item of that name, or an error that offers the nearest.
pub(crate) fn pick<T: Copy>(
    what: &'static str,
    given: &str,
    items: &[T],
    name: impl Fn(&T) -> &'static str,
) -> Result<T, UnknownName> {
    if let Some(item) = items.iter().find(|item| name(item) == given) {
        return Ok(*item);
    }
    let known: Vec<&str> = items.iter().map(&name).collect();
    Err(unknown(what, given, &known))
}

/// The error for a name that is not in `known`.
pub(crate) fn unknown(what: &'static str, given: &str, known: &[&str]) -> UnknownName {
    UnknownName {
        what,
        given: shorten(given),
        nearest: nearest(given, known).map(str::to_owned),
        known: known.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The closest known name, if it is close: as many edits as a slip of the hand makes.
pub(crate) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let given: String = given
        .chars()
        .take(NAME_CHARS_MAX)
        .collect::<String>()
        .to_lowercase();
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&given, name), *name))
        .filter(|(distance, name)| *distance <= 1.max(name.chars().count() / 3))
        .min()
        .map(|(_, name)| name)
}

/// Longer names are cut before they are compared or shown.
const NAME_CHARS_MAX: usize = 64;

fn shorten(given: &str) -> String {
    if given.chars().count() <= NAME_CHARS_MAX {
        return given.to_owned();
    }
    let mut cut: String = given.chars().take(NAME_CHARS_MAX).collect();
    cut.push('…');
    cut
}
