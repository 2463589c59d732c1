//! What is wrong with a configuration, told to a person: where, which key, what, and what was probably meant.

use std::fmt;

/// Where a mistake is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of the file, counted from 1.
    Line(String, usize),
    /// The file itself.
    WholeFile(String),
    /// A variable.
    Variable(String),
    /// A command-line flag.
    Flag(String),
    /// No one source: two settings that do not fit.
    Together,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(file, line) => write!(f, "{file}:{line}"),
            Place::WholeFile(name) | Place::Variable(name) | Place::Flag(name) => f.write_str(name),
            Place::Together => f.write_str("settings"),
        }
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// `section.key`; empty when the mistake is not about a key.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// A known name that was probably meant.
    pub meant: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        f.write_str(&self.problem)?;
        match &self.meant {
            Some(name) => write!(f, "; did you mean {name}?"),
            None => Ok(()),
        }
    }
}

/// All mistakes of a configuration, at least one. A command that meets them prints them and ends with 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.told())]
pub struct ConfigErrors(pub Vec<Mistake>);

impl ConfigErrors {
    pub(super) fn one(place: Place, problem: String) -> Self { Self(vec![Mistake { place, key: String::new(), problem, meant: None }]) }

    fn told(&self) -> String {
        let count = match self.0.len() {
            1 => "the configuration has a mistake".to_string(),
            n => format!("the configuration has {n} mistakes"),
        };
        self.0.iter().fold(count, |text, mistake| format!("{text}\n  {mistake}"))
    }
}
