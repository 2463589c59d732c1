//! This machine's microphone and speaker, as the driver uses them.

use futures_util::future::BoxFuture;

/// A microphone that delivers in its own time.
pub trait Microphone: Send {
    /// Samples a second.
    fn rate_hz(&self) -> u32;
    /// The next 20 ms, mono. Safe to drop and ask again.
    fn next_frame(&mut self) -> BoxFuture<'_, Vec<i16>>;
    /// What happened to it, as a sentence.
    fn trouble(&mut self) -> Option<String>;
}

/// A speaker that plays in its own time.
pub trait Loudspeaker: Send {
    /// Samples a second.
    fn rate_hz(&self) -> u32;
    /// Sound that waits for it.
    fn fill_ms(&self) -> u64;
    /// Takes mono samples; answers how many fitted.
    fn write(&mut self, sound: &[i16]) -> usize;
    /// What happened to it, as a sentence.
    fn trouble(&mut self) -> Option<String>;
}

/// Both.
pub struct Card {
    /// The microphone.
    pub mic: Box<dyn Microphone>,
    /// The speaker.
    pub speaker: Box<dyn Loudspeaker>,
}

#[cfg(feature = "devices")]
mod cpal_devices {
    use super::{BoxFuture, Loudspeaker, Microphone};
    use crate::audio::device::{InputStream, OutputStream, StreamTrouble};

    impl Microphone for InputStream {
        fn rate_hz(&self) -> u32 { InputStream::rate_hz(self) }
        fn next_frame(&mut self) -> BoxFuture<'_, Vec<i16>> { Box::pin(InputStream::next_frame(self)) }
        fn trouble(&mut self) -> Option<String> { self.poll_trouble().map(|t| told("microphone", self.name(), &t)) }
    }

    impl Loudspeaker for OutputStream {
        fn rate_hz(&self) -> u32 { OutputStream::rate_hz(self) }
        fn fill_ms(&self) -> u64 { OutputStream::fill_ms(self) }
        fn write(&mut self, sound: &[i16]) -> usize { OutputStream::write(self, sound) }
        fn trouble(&mut self) -> Option<String> { self.poll_trouble().map(|t| told("speaker", self.name(), &t)) }
    }

    fn told(what: &str, name: &str, trouble: &StreamTrouble) -> String {
        match trouble {
            StreamTrouble::Lost(why) => format!("The {what} {name} is gone: {why}. Plug it in and start again."),
            StreamTrouble::Moved(to) => format!("The {what} was moved to {to}."),
            StreamTrouble::Stalled => format!("No sound comes from the {what} {name}. Is it muted?"),
            StreamTrouble::Glitch(why) => format!("The {what} {name} skipped: {why}."),
        }
    }
}
