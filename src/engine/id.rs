//! Names of things, each its own type so that one can never stand for another.

use std::fmt;

/// Milliseconds on the conversation's own clock. 0 is its start; it never runs backwards.
pub type Ms = u64;

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{}", self.0) }
        }
    };
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub String);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
        impl From<&str> for $name { fn from(text: &str) -> Self { Self(text.to_string()) } }
    };
}

number_id!(/** One stretch of speech on the microphone, in the order it began. */ UtteranceId);
number_id!(/** One thing the gateway says aloud, from its first segment to its last. */ SpeechId);
number_id!(/** One exchange: what somebody said or typed, and all the agent does about it. */ TurnId);

text_id!(/** A tool call. Unique in its conversation; answered exactly once. */ CallId);
text_id!(/** A question the gateway asks a person. */ QuestionId);
text_id!(/** A conversation item, as `/v1/realtime` names it. */ ItemId);
