//! Keeps a microphone or a speaker open, whatever happens to it.
//!
//! Owns the thread that asks the sound system what there is, opens streams and lets old ones go. Called through
//! [`super::kept`]. Never touches sound. A device that was named is taken whenever it is there, else the system's default; the
//! default is followed when it changes.

use super::keeping::{Deed, Keeping, TICK_MS};
use crate::audio::AudioError;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// The sound system is asked every so many ticks, 300 ms, and at once when a stream was lost.
const ASK_TICKS: u32 = 3;
/// Words and news that wait at most; both are few.
const QUEUE: usize = 16;

/// Where streams of one kind come from.
pub(super) trait Source: Send + 'static {
    /// A stream that is open.
    type Stream: Send + 'static;
    /// Id of the device that should be open as things are now. `on`: the one that is.
    fn wanted(&mut self, on: Option<&str>) -> Option<String>;
    /// Opens it.
    fn open(&mut self, id: &str) -> Result<Self::Stream, AudioError>;
}

/// From the owner of the sound to the keeper.
pub(super) enum Word<S> {
    /// The stream of this number broke or gave nothing: here it is, open another. Of an older one than the last that was opened it
    /// says nothing new.
    Lost(S, u64),
    /// This one is not needed any more.
    Done(S),
}

/// From the keeper to the owner of the sound.
pub(super) enum News<S> {
    /// A stream that takes the place of the one before, and its number. What was open at the beginning has number 0.
    Opened(S, u64),
    /// Nothing can be opened; why, as far as it is known. Said once until something is open again.
    Gone(Option<String>),
}

/// The owner's end. The thread ends when it is dropped.
pub(super) struct Keeper<S> {
    pub(super) news: mpsc::Receiver<News<S>>,
    words: Option<SyncSender<Word<S>>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Send + 'static> Keeper<S> {
    /// Begins to keep what is open now.
    pub(super) fn start<O: Source<Stream = S>>(name: &str, source: O, on: &str) -> Result<Self, AudioError> {
        let (words, inbox) = sync_channel(QUEUE);
        let (tell, news) = mpsc::channel(QUEUE);
        let keeping = Keeping::new(on);
        let on = on.to_owned();
        let run = move || Loop { source, keeping, on: Some(on), number: 0, tell, refused: false }.run(&inbox);
        let thread = super::thread(name, run)?;
        Ok(Self { news, words: Some(words), thread: Some(thread) })
    }

    /// A word that finds no room is no loss: the thread looks again by itself.
    pub(super) fn tell(&self, word: Word<S>) {
        if let Some(words) = &self.words { let _ = words.try_send(word); }
    }
}

impl<S> Drop for Keeper<S> {
    fn drop(&mut self) {
        self.words = None;
        self.news.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Loop<O: Source> {
    source: O,
    keeping: Keeping,
    on: Option<String>,
    number: u64,
    tell: mpsc::Sender<News<O::Stream>>,
    /// Why the last try failed was told.
    refused: bool,
}

impl<O: Source> Loop<O> {
    fn run(mut self, words: &Receiver<Word<O::Stream>>) {
        let (mut ticks, mut wanted) = (0u32, None);
        loop {
            match words.recv_timeout(Duration::from_millis(TICK_MS)) {
                Ok(Word::Lost(stream, number)) => {
                    drop(stream);
                    if number == self.number {
                        self.keeping.lost();
                        self.on = None;
                        ticks = 0;
                    }
                }
                Ok(Word::Done(stream)) => drop(stream),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if ticks.is_multiple_of(ASK_TICKS) {
                wanted = self.source.wanted(self.on.as_deref());
            }
            ticks = ticks.wrapping_add(1);
            if !self.act(wanted.as_deref()) {
                return;
            }
        }
    }

    /// False when nobody listens any more.
    fn act(&mut self, wanted: Option<&str>) -> bool {
        match self.keeping.tick(wanted) {
            Deed::Nothing => true,
            Deed::Gone => self.tell.blocking_send(News::Gone(None)).is_ok(),
            Deed::Open(id) => match self.source.open(&id) {
                Ok(stream) => {
                    self.keeping.opened(&id);
                    (self.on, self.refused) = (Some(id), false);
                    self.number += 1;
                    self.tell.blocking_send(News::Opened(stream, self.number)).is_ok()
                }
                Err(why) => {
                    self.keeping.failed();
                    // What still plays is no loss; otherwise the first failure is told.
                    let first = self.on.is_none() && !std::mem::replace(&mut self.refused, true);
                    !first || self.tell.blocking_send(News::Gone(Some(why.to_string()))).is_ok()
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A machine whose devices come and go.
    #[derive(Clone, Default)]
    struct Fake(Arc<Mutex<(Vec<String>, u64)>>);

    impl Fake {
        fn has(&self, devices: &[&str]) { self.0.lock().unwrap().0 = devices.iter().map(|d| (*d).to_string()).collect() }
    }

    impl Source for Fake {
        type Stream = String;
        fn wanted(&mut self, _: Option<&str>) -> Option<String> { self.0.lock().unwrap().0.first().cloned() }
        fn open(&mut self, id: &str) -> Result<String, AudioError> {
            let mut fake = self.0.lock().unwrap();
            fake.1 += 1;
            Ok(format!("{id} {}", fake.1))
        }
    }

    fn next(keeper: &mut Keeper<String>) -> News<String> { keeper.news.blocking_recv().expect("news") }

    #[test]
    fn a_device_is_lost_and_comes_back_and_nothing_is_left_open() {
        let fake = Fake::default();
        fake.has(&["headset", "built-in"]);
        let mut keeper = Keeper::start("test-keeper", fake.clone(), "headset").unwrap();
        fake.has(&["built-in"]);
        keeper.tell(Word::Lost("headset 0".into(), 0));
        let News::Opened(stream, first) = next(&mut keeper) else { panic!("another is there") };
        assert!(stream.starts_with("built-in"), "{stream}");
        fake.has(&["headset", "built-in"]);
        let News::Opened(back, second) = next(&mut keeper) else { panic!("it is back") };
        assert!(back.starts_with("headset"), "{back}");
        // That one broke as well, which was told too late: nothing is opened for it.
        keeper.tell(Word::Lost(stream, first));
        std::thread::sleep(Duration::from_millis(3 * TICK_MS));
        assert_eq!((fake.0.lock().unwrap().1, first, second), (2, 1, 2));
        fake.has(&[]);
        keeper.tell(Word::Lost(back, second));
        assert!(matches!(next(&mut keeper), News::Gone(None)));
        drop(keeper);
        // Only the thread held the other end.
        assert_eq!(Arc::strong_count(&fake.0), 1);
    }
}
