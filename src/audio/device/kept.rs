//! A microphone and a speaker that stay: whichever device is there, the sound goes on.
//!
//! Owns the open stream and its [`Keeper`]. Called by the loop's card. The rate may change with the device: who reads asks for it
//! after each piece of [`DeviceNews`].

use super::input::{InputStream, open_input};
use super::keeper::{Keeper, News, Source, Word};
use super::output::{OutputStream, open_output};
use super::wish::Wish;
use super::{Kind, StreamTrouble};
use crate::audio::AudioError;
use std::collections::VecDeque;

/// A speaker that takes nothing for so many calls of [`KeptOutput::look`], 20 ms apart, while sound waits has stalled: 1 s.
const STALLED_LOOKS: u32 = 50;

/// What happened to a microphone or speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceNews {
    /// A device is open in place of the one before, perhaps at another rate.
    Opened {
        /// What it is called.
        name: String,
        /// What was open before; `None` when nothing was, or the same again.
        instead_of: Option<String>,
        /// The one before had broken.
        broke: bool,
        /// The same one, tried anew because it was silent: nothing new is known of it.
        again: bool,
    },
    /// Nothing is open: the device is gone and there is no other. It is taken again when it comes back.
    Gone {
        /// What was open.
        name: String,
        /// Why no other is, when something could be tried.
        why: Option<String>,
    },
    /// No sound has come for a second, or none was taken; it is opened again, and again. Said once until sound goes on.
    Stalled {
        /// What is open.
        name: String,
    },
    /// The sound system moved the stream; it goes on.
    Moved {
        /// Where to, in the sound system's words.
        to: String,
    },
    /// The sound system says that something was skipped or repeated; it goes on.
    Glitch,
}

struct Opener<S> {
    wish: Wish,
    open: fn(Option<&str>) -> Result<S, AudioError>,
}

impl<S: Send + 'static> Source for Opener<S> {
    type Stream = S;
    fn wanted(&mut self, on: Option<&str>) -> Option<String> { self.wish.now(on) }
    fn open(&mut self, id: &str) -> Result<S, AudioError> { (self.open)(Some(id)) }
}

/// What both directions have: a stream or none, a keeper, and what is to be told.
struct Kept<S> {
    stream: Option<S>,
    /// The keeper's number of it.
    number: u64,
    keeper: Keeper<S>,
    news: VecDeque<DeviceNews>,
    /// Id and name of what is or was open.
    id: String,
    name: String,
    /// What was open broke, and nothing has been opened since.
    broke: bool,
    /// It stands still, and that was told.
    stalled: bool,
}

impl<S: Send + 'static> Kept<S> {
    fn new(kind: Kind, wished: Option<&str>, stream: S, id: &str, name: &str, open: fn(Option<&str>) -> Result<S, AudioError>) -> Result<Self, AudioError> {
        let source = Opener { wish: Wish::new(kind, wished, id), open };
        let keeper = Keeper::start(&format!("voxgate-{}-keeper", kind.what()), source, id)?;
        Ok(Self { stream: Some(stream), number: 0, keeper, news: VecDeque::new(), id: id.to_owned(), name: name.to_owned(), broke: false, stalled: false })
    }

    fn tell(&mut self, news: DeviceNews) {
        // Nobody reads: the newest says most.
        if self.news.len() >= 16 { self.news.pop_front(); }
        self.news.push_back(news);
    }

    /// The stream goes back to the keeper, who opens another.
    fn lose(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.broke = true;
            self.keeper.tell(Word::Lost(stream, self.number));
        }
    }

    fn take(&mut self, news: News<S>, called: fn(&S) -> (&str, &str)) {
        match news {
            News::Opened(stream, number) => {
                self.number = number;
                let (id, name) = called(&stream);
                let (id, name) = (id.to_owned(), name.to_owned());
                // Two of the same name are told apart by what the sound system calls them.
                let label = |id: &str, name: &str, other: &str| if name == other { format!("{name} ({id})") } else { name.to_owned() };
                let told = if id == self.id { (name.clone(), None) } else { (label(&id, &name, &self.name), Some(label(&self.id, &self.name, &name))) };
                (self.id, self.name) = (id, name);
                let (name, instead_of) = told;
                let broke = std::mem::take(&mut self.broke);
                if let Some(old) = self.stream.replace(stream) {
                    self.keeper.tell(Word::Done(old));
                }
                self.stalled &= instead_of.is_none();
                self.tell(DeviceNews::Opened { again: self.stalled, instead_of, name, broke });
            }
            News::Gone(why) => {
                let name = self.name.clone();
                self.tell(DeviceNews::Gone { name, why });
            }
        }
    }

    fn trouble(&mut self, trouble: StreamTrouble) {
        match trouble {
            StreamTrouble::Lost(why) => {
                tracing::info!(device = %self.name, %why, "stream lost");
                self.lose();
            }
            StreamTrouble::Stalled => {
                if !std::mem::replace(&mut self.stalled, true) {
                    let name = self.name.clone();
                    self.tell(DeviceNews::Stalled { name });
                }
                self.lose();
            }
            StreamTrouble::Moved(to) => self.tell(DeviceNews::Moved { to }),
            StreamTrouble::Glitch(_) => self.tell(DeviceNews::Glitch),
        }
    }
}

/// A microphone that stays.
pub struct KeptInput {
    kept: Kept<InputStream>,
    rate_hz: u32,
    dropped: u64,
}

impl KeptInput {
    /// Opens a microphone by name, or the default one. Blocks up to a few seconds: call it off the async threads.
    ///
    /// # Errors
    /// [`AudioError`] when there is none now; later there may be none for a while.
    pub fn open(name: Option<&str>) -> Result<Self, AudioError> {
        let stream = open_input(name)?;
        let (id, called, rate_hz) = (stream.id().to_owned(), stream.name().to_owned(), stream.rate_hz());
        Ok(Self { kept: Kept::new(Kind::Input, name, stream, &id, &called, open_input)?, rate_hz, dropped: 0 })
    }

    /// Samples a second of what comes next.
    pub fn rate_hz(&self) -> u32 { self.rate_hz }

    /// What the device is called that is, or was last, open.
    pub fn name(&self) -> &str { &self.kept.name }

    /// The next 20 ms of mono i16, of whichever device is open by then. Waits for it; safe to drop and ask again.
    pub async fn next_frame(&mut self) -> Vec<i16> {
        loop {
            tokio::select! {
                biased;
                Some(news) = self.kept.keeper.news.recv() => self.take(news),
                heard = heard(&mut self.kept.stream) => match heard {
                    Ok(frame) => {
                        self.kept.stalled = false;
                        return frame;
                    }
                    Err(trouble) => self.kept.trouble(trouble),
                },
            }
            if !self.kept.news.is_empty() {
                // So that it is told although no sound comes.
                return Vec::new();
            }
        }
    }

    /// What happened, in order.
    pub fn news(&mut self) -> Option<DeviceNews> { self.kept.news.pop_front() }

    /// Frames that were dropped because nobody read them.
    pub fn dropped(&self) -> u64 { self.dropped + self.kept.stream.as_ref().map_or(0, InputStream::dropped) }

    fn take(&mut self, news: News<InputStream>) {
        if let News::Opened(stream, _) = &news {
            self.rate_hz = stream.rate_hz();
            self.dropped = self.dropped();
        }
        self.kept.take(news, |s| (s.id(), s.name()));
    }
}

async fn heard(stream: &mut Option<InputStream>) -> Result<Vec<i16>, StreamTrouble> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

/// A speaker that stays. While no device is open, what is written is dropped.
pub struct KeptOutput {
    kept: Kept<OutputStream>,
    rate_hz: u32,
    underruns: u64,
    /// For the watchdog: how much was taken, and for how many looks that has not changed.
    taken: u64,
    still: u32,
}

impl KeptOutput {
    /// Opens a speaker by name, or the default one. Blocks up to a few seconds: call it off the async threads.
    ///
    /// # Errors
    /// [`AudioError`] when there is none now; later there may be none for a while.
    pub fn open(name: Option<&str>) -> Result<Self, AudioError> {
        let stream = open_output(name)?;
        let (id, called, rate_hz) = (stream.id().to_owned(), stream.name().to_owned(), stream.rate_hz());
        Ok(Self { kept: Kept::new(Kind::Output, name, stream, &id, &called, open_output)?, rate_hz, underruns: 0, taken: 0, still: 0 })
    }

    /// Samples a second that it takes from now on.
    pub fn rate_hz(&self) -> u32 { self.rate_hz }

    /// What the device is called that is, or was last, open.
    pub fn name(&self) -> &str { &self.kept.name }

    /// A device is open.
    pub fn is_open(&self) -> bool { self.kept.stream.is_some() }

    /// Takes mono i16; answers how many samples fitted.
    pub fn write(&mut self, sound: &[i16]) -> usize {
        self.kept.stream.as_mut().map_or(sound.len(), |s| s.write(sound))
    }

    /// Samples that wait for the device.
    pub fn fill(&self) -> usize { self.kept.stream.as_ref().map_or(0, OutputStream::fill) }

    /// Times that a device wanted more than there was.
    pub fn underruns(&self) -> u64 { self.underruns + self.kept.stream.as_ref().map_or(0, OutputStream::underruns) }

    /// Looks after the device; to be called every 20 ms. Answers what happened, in order.
    pub fn look(&mut self) -> Option<DeviceNews> {
        while let Ok(news) = self.kept.keeper.news.try_recv() {
            if let News::Opened(stream, _) = &news {
                self.rate_hz = stream.rate_hz();
                self.underruns = self.underruns();
                self.still = 0;
            }
            self.kept.take(news, |s| (s.id(), s.name()));
        }
        if let Some(stream) = &mut self.kept.stream {
            let mut trouble = stream.poll_trouble();
            let moving = stream.played() != self.taken || stream.fill() == 0;
            self.taken = stream.played();
            self.still = if moving { 0 } else { self.still + 1 };
            self.kept.stalled &= !moving || stream.played() == 0;
            if self.still >= STALLED_LOOKS {
                trouble = trouble.or(Some(StreamTrouble::Stalled));
            }
            if let Some(trouble) = trouble {
                if matches!(trouble, StreamTrouble::Lost(_) | StreamTrouble::Stalled) {
                    self.underruns += stream.underruns();
                    self.still = 0;
                }
                self.kept.trouble(trouble);
            }
        }
        self.kept.news.pop_front()
    }
}
