//! A detector that is not asked about silence: who says nothing for a while costs next to nothing, and who begins to speak is heard from
//! the breath before.
//!
//! Used for the ears of proxied sessions, of which there can be many. Frames below [`QUIET`] for longer than [`AFTER`] are taken for
//! nobody; the first louder one is judged after those just before it, so that the detector knows where it is.

use std::collections::VecDeque;

use super::vad::{Vad, VadFrame};
use crate::media::frame::EAR_FRAME;
use crate::media::level::rms_dbfs;

/// Every sample of a quiet frame is below this: -48 dBFS. Chosen: quieter than a person across a room at any usual gain.
pub const QUIET: u16 = 130;
/// So many quiet frames are judged before nobody is there: two seconds, longer than any pause that belongs to what was said.
const AFTER: u32 = 100;
/// So many frames before the first louder one are judged with it: 300 ms.
const BEFORE: usize = 15;

/// See the file's head.
pub struct Asleep {
    vad: Box<dyn Vad>,
    quiet: u32,
    before: VecDeque<[i16; EAR_FRAME]>,
}

impl Asleep {
    /// Around this detector.
    pub fn around(vad: Box<dyn Vad>) -> Self { Self { vad, quiet: 0, before: VecDeque::with_capacity(BEFORE) } }
}

impl Vad for Asleep {
    fn push(&mut self, frame: &[i16]) -> VadFrame {
        let slept = self.quiet > AFTER;
        self.quiet = if frame.iter().all(|s| s.unsigned_abs() < QUIET) { self.quiet.saturating_add(1) } else { 0 };
        if self.quiet <= AFTER {
            if slept {
                for before in std::mem::take(&mut self.before) { self.vad.push(&before); }
            }
            return self.vad.push(frame);
        }
        if let Ok(frame) = <[i16; EAR_FRAME]>::try_from(frame) {
            if self.before.len() == BEFORE { self.before.pop_front(); }
            self.before.push_back(frame);
        }
        VadFrame { probability: 0.0, level_dbfs: rms_dbfs(frame) }
    }

    fn reset(&mut self) {
        self.vad.reset();
        self.quiet = 0;
        self.before.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Writes down the loudest sample of each frame it is asked about.
    struct Noted(Arc<Mutex<Vec<i16>>>);

    impl Vad for Noted {
        fn push(&mut self, frame: &[i16]) -> VadFrame {
            self.0.lock().unwrap().push(frame[0]);
            VadFrame { probability: 0.9, level_dbfs: rms_dbfs(frame) }
        }
        fn reset(&mut self) {}
    }

    #[test]
    fn silence_is_not_judged_and_the_breath_before_speech_is() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut vad = Asleep::around(Box::new(Noted(asked.clone())));
        let mut probability = 0.0;
        for n in 0..500 { probability = vad.push(&[(n % 100) as i16; EAR_FRAME]).probability }
        assert_eq!((asked.lock().unwrap().len(), probability), (100, 0.0));
        asked.lock().unwrap().clear();
        assert_eq!(vad.push(&[5_000; EAR_FRAME]).probability, 0.9);
        let asked = asked.lock().unwrap();
        assert_eq!((asked.len(), asked[0], asked[15]), (16, 85, 5_000), "the last 300 ms first");
    }
}
