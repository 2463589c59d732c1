//! Values as a source gives them, and readers that say what is wrong with them. Never clamps.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A value before it is understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given {
    /// A string of the file.
    Text(String),
    /// A whole number of the file; `None` when it fits nothing.
    Whole(Option<i64>),
    /// A decimal number of the file.
    Decimal(f64),
    /// `true` or `false` of the file.
    Truth(bool),
    /// A list of the file.
    List(Vec<Given>),
    /// A table or a date of the file, by its name.
    Other(&'static str),
    /// Text of a variable or a flag, which stands for any of these.
    Loose(String),
}

impl Given {
    fn name(&self) -> String {
        match self {
            Given::Text(text) | Given::Loose(text) => format!("\"{text}\""),
            Given::Whole(Some(n)) => n.to_string(),
            Given::Whole(None) => "a number with too many digits".into(),
            Given::Decimal(n) => n.to_string(),
            Given::Truth(b) => b.to_string(),
            Given::List(_) => "a list".into(),
            Given::Other(name) => format!("a {name}"),
        }
    }

    fn is_not<T>(&self, what: impl Display) -> Result<T, String> { Err(format!("must be {what}, not {}", self.name())) }
}

/// Any text.
pub(super) fn text(given: &Given) -> Result<String, String> {
    match given {
        Given::Text(text) | Given::Loose(text) => Ok(text.clone()),
        // What is given may be a secret typed without quotes: it is not repeated.
        Given::Whole(_) | Given::Decimal(_) => Err("must be text in quotes, not a number".into()),
        other => other.is_not("text in quotes"),
    }
}

/// Text that is not blank.
pub(super) fn some_text(given: &Given) -> Result<String, String> {
    text(given).and_then(|t| if t.trim().is_empty() { Err("must not be empty".into()) } else { Ok(t) })
}

/// A whole number within bounds.
pub(super) fn whole<T: TryFrom<i64> + Display + Copy + Into<i64>>(given: &Given, range: RangeInclusive<T>) -> Result<T, String> {
    let bounds = format!("a whole number from {} to {}", range.start(), range.end());
    let number = match given {
        Given::Whole(number) => *number,
        Given::Loose(text) => text.trim().parse().ok(),
        _ => None,
    };
    let fits = number.filter(|n| ((*range.start()).into()..=(*range.end()).into()).contains(n)).and_then(|n| T::try_from(n).ok());
    fits.map_or_else(|| given.is_not(bounds), Ok)
}

/// A number within bounds.
pub(super) fn decimal(given: &Given, range: RangeInclusive<f32>) -> Result<f32, String> {
    let number = match given {
        Given::Decimal(number) => Some(*number as f32),
        Given::Whole(Some(number)) => Some(*number as f32),
        Given::Loose(text) => text.trim().parse::<f32>().ok(),
        _ => None,
    };
    number.filter(|n| range.contains(n)).map_or_else(|| given.is_not(format!("a number from {} to {}", range.start(), range.end())), Ok)
}

/// One of a few words.
pub(super) fn word<T: Copy>(given: &Given, words: &[(&str, T)]) -> Result<T, String> {
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let found = match given {
        Given::Text(text) | Given::Loose(text) => words.iter().find(|(word, _)| word == text),
        _ => None,
    };
    found.map_or_else(|| given.is_not(format!("one of {}", names.join(", "))), |(_, value)| Ok(*value))
}

/// `true` or `false`.
pub(super) fn truth(given: &Given) -> Result<bool, String> {
    match given {
        Given::Truth(truth) => Ok(*truth),
        Given::Loose(text) if text == "true" || text == "false" => Ok(text == "true"),
        other => other.is_not("true or false"),
    }
}

/// A list of texts; a variable gives them with commas between.
pub(super) fn texts(given: &Given) -> Result<Vec<String>, String> {
    match given {
        Given::List(items) => items.iter().map(some_text).collect::<Result<_, _>>().map_err(|e| format!("every entry {e}")),
        Given::Loose(text) => Ok(text.split(',').map(str::trim).filter(|t| !t.is_empty()).map(str::to_string).collect()),
        other => other.is_not("a list of texts"),
    }
}
