//! `turn_detection`: who says when a turn is over.

use serde_json::{Value, json};

use super::error::BadEvent;
use super::fields::{Fields, no_hint};

/// The silence that ends a turn where the client names none, in milliseconds. The API's own default.
pub const SILENCE_MS: u32 = 500;

/// How long `semantic_vad` is willing to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eagerness {
    /// Lets people think.
    Low,
    /// In between.
    Medium,
    /// Answers quickly.
    High,
    /// As medium.
    Auto,
}

impl Eagerness {
    /// The silence it stands for, in milliseconds. Chosen: until words are judged for being a whole thought,
    /// eagerness is a silence and nothing else.
    pub fn silence_ms(self) -> u32 {
        match self {
            Self::Low => 2_000,
            Self::Medium | Self::Auto => 1_000,
            Self::High => 500,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Auto => "auto",
        }
    }
}

/// What ends a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ends {
    /// `server_vad`.
    Silence {
        /// Probability that counts as speech. `None`: the client named none.
        threshold: Option<f32>,
        /// Sound kept from before speech, in milliseconds.
        prefix_ms: u32,
        /// Silence in milliseconds. `None`: the client named none.
        silence_ms: Option<u32>,
        /// Kept and echoed; nothing is done when it runs out.
        idle_timeout_ms: Option<u32>,
    },
    /// `semantic_vad`.
    Meaning(Eagerness),
}

/// Automatic turn taking. `turn_detection: null` is its absence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turns {
    /// What ends a turn.
    pub ends: Ends,
    /// A turn makes a response.
    pub create_response: bool,
    /// Speech cuts the voice.
    pub interrupt_response: bool,
}

impl Default for Turns {
    fn default() -> Self { Self { ends: Ends::SILENCE, create_response: true, interrupt_response: true } }
}

impl Ends {
    const SILENCE: Self = Self::Silence { threshold: None, prefix_ms: 300, silence_ms: None, idle_timeout_ms: None };
}

/// The fields of a `turn_detection` that were there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnsChange {
    semantic: Option<bool>,
    threshold: Option<f32>,
    prefix_ms: Option<u32>,
    silence_ms: Option<u32>,
    idle_timeout_ms: Option<Option<u32>>,
    eagerness: Option<Eagerness>,
    create_response: Option<bool>,
    interrupt_response: Option<bool>,
}

impl TurnsChange {
    pub(super) fn read(fields: &Fields) -> Result<Self, BadEvent> {
        let kind = fields.word("type", &["server_vad", "semantic_vad"])?;
        let shared = ["type", "create_response", "interrupt_response"];
        let own: &[&str] = match kind {
            Some("semantic_vad") => &["eagerness"],
            Some(_) => &["threshold", "prefix_padding_ms", "silence_duration_ms", "idle_timeout_ms"],
            None => &["threshold", "prefix_padding_ms", "silence_duration_ms", "idle_timeout_ms", "eagerness"],
        };
        fields.only(&[&shared, own].concat(), no_hint)?;
        let ms = |name: &str, low, high| fields.whole(name, low, high).map(|n| n.map(|n| n as u32));
        Ok(Self {
            semantic: kind.map(|kind| kind == "semantic_vad"),
            threshold: fields.number("threshold", 0.0, 1.0)?.map(|n| n as f32),
            prefix_ms: ms("prefix_padding_ms", 0, 5_000)?,
            silence_ms: ms("silence_duration_ms", 100, 10_000)?,
            idle_timeout_ms: match fields.raw("idle_timeout_ms") {
                Some(Value::Null) => Some(None),
                _ => ms("idle_timeout_ms", 5_000, 30_000)?.map(Some),
            },
            eagerness: fields.word("eagerness", &["low", "medium", "high", "auto"])?.map(|word| match word {
                "low" => Eagerness::Low,
                "medium" => Eagerness::Medium,
                "high" => Eagerness::High,
                _ => Eagerness::Auto,
            }),
            create_response: fields.flag("create_response")?,
            interrupt_response: fields.flag("interrupt_response")?,
        })
    }

    /// What holds afterwards: fields that were not there keep their value, unless the kind changed.
    pub(super) fn over(&self, before: Option<Turns>) -> Turns {
        let before = before.unwrap_or_default();
        let semantic = self.semantic.unwrap_or(matches!(before.ends, Ends::Meaning(_)));
        let ends = match (semantic, before.ends) {
            (true, Ends::Meaning(eagerness)) => Ends::Meaning(self.eagerness.unwrap_or(eagerness)),
            (true, Ends::Silence { .. }) => Ends::Meaning(self.eagerness.unwrap_or(Eagerness::Auto)),
            (false, Ends::Meaning(_)) => self.over_silence(Ends::SILENCE),
            (false, silence) => self.over_silence(silence),
        };
        Turns {
            ends,
            create_response: self.create_response.unwrap_or(before.create_response),
            interrupt_response: self.interrupt_response.unwrap_or(before.interrupt_response),
        }
    }

    fn over_silence(&self, before: Ends) -> Ends {
        match before {
            Ends::Silence { threshold, prefix_ms, silence_ms, idle_timeout_ms } => Ends::Silence {
                threshold: self.threshold.or(threshold),
                prefix_ms: self.prefix_ms.unwrap_or(prefix_ms),
                silence_ms: self.silence_ms.or(silence_ms),
                idle_timeout_ms: self.idle_timeout_ms.unwrap_or(idle_timeout_ms),
            },
            meaning => meaning,
        }
    }
}

/// As it stands in a session object.
pub(super) fn to_json(turns: Option<Turns>) -> Value {
    let Some(Turns { ends, create_response, interrupt_response }) = turns else { return Value::Null };
    match ends {
        Ends::Silence { threshold, prefix_ms, silence_ms, idle_timeout_ms } => json!({
            "type": "server_vad",
            // Through text, so that 0.7 stays 0.7 and does not become 0.699999988.
            "threshold": threshold.unwrap_or(0.5).to_string().parse::<f64>().unwrap_or(0.5),
            "prefix_padding_ms": prefix_ms,
            "silence_duration_ms": silence_ms.unwrap_or(SILENCE_MS),
            "idle_timeout_ms": idle_timeout_ms,
            "create_response": create_response,
            "interrupt_response": interrupt_response,
        }),
        Ends::Meaning(eagerness) => json!({
            "type": "semantic_vad",
            "eagerness": eagerness.word(),
            "create_response": create_response,
            "interrupt_response": interrupt_response,
        }),
    }
}
