//! What the gateway and the recogniser's process say to each other: frames of a length (u32, little endian), a tag and a body.
//!
//! Owns the format. Called by pool and child. Bounded: a longer frame than any honest one is refused before it is read.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::{Job, MAX_SAMPLES};
use crate::engine::heard::{Heard, Phrase, PhraseId, PhraseScore};

/// The longest frame: 30 s of sound and the job's head, or a phrase table of the same size.
pub const MAX_FRAME: usize = MAX_SAMPLES * 2 + 1024;

const START: u8 = 1;
const JOB: u8 = 2;
const READY: u8 = 3;
const FAILED: u8 = 4;
const HEARD: u8 = 5;
const REFUSED: u8 = 6;

/// A phrase as it is sent at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentPhrase {
    /// Index in the table.
    pub id: PhraseId,
    /// Its spellings.
    pub spellings: Vec<String>,
    /// Whether a question mark belongs to it.
    pub question: bool,
    /// Nats below the free transcript to which it is followed.
    pub margin: f32,
}

impl SentPhrase {
    /// A phrase with its margin.
    pub fn new(phrase: &Phrase, margin: f32) -> Self {
        Self { id: phrase.id, spellings: phrase.spellings.clone(), question: phrase.question, margin }
    }
}

/// Milliseconds that the stages of one recognition took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Sound to spectrogram.
    pub mel: f32,
    /// Encoder.
    pub encode: f32,
    /// Free transcript.
    pub free: f32,
    /// Scores of the phrases.
    pub score: f32,
}

/// What the gateway sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// First and once: the phrases to score.
    Start(Vec<SentPhrase>),
    /// An utterance.
    Job {
        /// Comes back with the answer.
        id: u64,
        /// Whether to score.
        score: bool,
        /// Language code.
        language: String,
        /// Mono i16, 16 kHz.
        samples: Vec<i16>,
    },
}

/// What the process answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The model is loaded.
    Ready,
    /// It cannot be; the process ends.
    Failed(String),
    /// The answer to a job.
    Heard {
        /// Of the job.
        id: u64,
        /// The result.
        heard: Heard,
        /// How long it took.
        ms: Timings,
    },
    /// This job cannot be done, others can.
    Refused {
        /// Of the job.
        id: u64,
        /// Why.
        why: String,
    },
}

#[derive(Serialize, Deserialize)]
struct HeardBody {
    id: u64,
    text: String,
    free_ll: f32,
    tokens: u32,
    no_speech: f32,
    clipped: bool,
    scores: Vec<(PhraseId, f32)>,
    ms: Timings,
}

fn bad(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

fn frame(tag: u8, body: &[u8]) -> io::Result<Vec<u8>> {
    let length = body.len() + 1;
    if length > MAX_FRAME {
        return Err(bad(format!("a frame of {length} bytes is too long")));
    }
    let mut out = Vec::with_capacity(length + 4);
    out.extend((length as u32).to_le_bytes());
    out.push(tag);
    out.extend(body);
    Ok(out)
}

/// The length that a frame's first four bytes announce.
///
/// # Errors
/// When it is zero or more than [`MAX_FRAME`].
pub fn frame_length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if (1..=MAX_FRAME).contains(&length) { Ok(length) } else { Err(bad(format!("a frame of {length} bytes"))) }
}

/// Reads one frame without its length. `None` at a clean end of the stream.
///
/// # Errors
/// When the stream breaks off inside a frame or the frame is too long.
pub fn read_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 4];
    match from.read_exact(&mut head) {
        Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut body = vec![0; frame_length(head)?];
    from.read_exact(&mut body)?;
    Ok(Some(body))
}

/// Writes a reply and flushes it.
///
/// # Errors
/// The stream's.
pub fn write_reply(to: &mut impl Write, reply: &Reply) -> io::Result<()> {
    to.write_all(&reply.encode()?)?;
    to.flush()
}

/// The frame of a job, straight from its samples.
///
/// # Errors
/// When the language is longer than 255 bytes.
pub fn encode_job(id: u64, job: &Job) -> io::Result<Vec<u8>> {
    let samples = job.heard_samples();
    let language = u8::try_from(job.language.len()).map_err(bad)?;
    let mut body = Vec::with_capacity(samples.len() * 2 + 300);
    body.extend(id.to_le_bytes());
    body.push(u8::from(job.score));
    body.push(language);
    body.extend(job.language.as_bytes());
    samples.iter().for_each(|sample| body.extend(sample.to_le_bytes()));
    frame(JOB, &body)
}

/// The frame that starts a process.
///
/// # Errors
/// When the table is too long.
pub fn encode_start(phrases: &[SentPhrase]) -> io::Result<Vec<u8>> {
    frame(START, &serde_json::to_vec(phrases).map_err(bad)?)
}

impl Request {
    /// Reads a frame's content.
    ///
    /// # Errors
    /// When it is not a request.
    pub fn decode(bytes: &[u8]) -> io::Result<Self> {
        match bytes.split_first() {
            Some((&START, body)) => serde_json::from_slice(body).map(Self::Start).map_err(bad),
            Some((&JOB, body)) => decode_job(body),
            _ => Err(bad("not a request")),
        }
    }
}

fn decode_job(body: &[u8]) -> io::Result<Request> {
    let short = || bad("a short job");
    let (id, rest) = body.split_first_chunk::<8>().ok_or_else(short)?;
    let ([score, language], rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let (language, sound) = rest.split_at_checked((*language).into()).ok_or_else(short)?;
    let (pairs, odd) = sound.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(bad("half a sample"));
    }
    Ok(Request::Job {
        id: u64::from_le_bytes(*id),
        score: *score != 0,
        language: String::from_utf8(language.to_vec()).map_err(bad)?,
        samples: pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect(),
    })
}

impl Reply {
    /// The whole frame.
    ///
    /// # Errors
    /// When it is too long.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Ready => frame(READY, &[]),
            Self::Failed(why) => frame(FAILED, why.as_bytes()),
            Self::Heard { id, heard, ms } => {
                let body = HeardBody {
                    id: *id,
                    text: heard.text.clone(),
                    free_ll: heard.free_ll,
                    tokens: heard.tokens,
                    no_speech: heard.no_speech,
                    clipped: heard.clipped,
                    scores: heard.scores.iter().map(|score| (score.id, score.ll)).collect(),
                    ms: *ms,
                };
                frame(HEARD, &serde_json::to_vec(&body).map_err(bad)?)
            }
            Self::Refused { id, why } => {
                let mut body = id.to_le_bytes().to_vec();
                body.extend(why.as_bytes());
                frame(REFUSED, &body)
            }
        }
    }

    /// Reads a frame's content.
    ///
    /// # Errors
    /// When it is not a reply.
    pub fn decode(bytes: &[u8]) -> io::Result<Self> {
        match bytes.split_first() {
            Some((&READY, [])) => Ok(Self::Ready),
            Some((&FAILED, why)) => Ok(Self::Failed(String::from_utf8_lossy(why).into_owned())),
            Some((&HEARD, body)) => serde_json::from_slice(body).map(HeardBody::into_reply).map_err(bad),
            Some((&REFUSED, body)) => {
                let (id, why) = body.split_first_chunk::<8>().ok_or_else(|| bad("a short refusal"))?;
                Ok(Self::Refused { id: u64::from_le_bytes(*id), why: String::from_utf8_lossy(why).into_owned() })
            }
            _ => Err(bad("not a reply")),
        }
    }
}

impl HeardBody {
    fn into_reply(self) -> Reply {
        let heard = Heard {
            text: self.text,
            free_ll: self.free_ll,
            tokens: self.tokens,
            no_speech: self.no_speech,
            clipped: self.clipped,
            scores: self.scores.into_iter().map(|(id, ll)| PhraseScore { id, ll }).collect(),
        };
        Reply::Heard { id: self.id, heard, ms: self.ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(frame: &[u8]) -> Vec<u8> {
        read_frame(&mut &frame[..]).unwrap().unwrap()
    }

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let phrase = Phrase { id: 3, spellings: vec!["Enter plan mode".into()], question: false };
        let sent = vec![SentPhrase::new(&phrase, 6.0)];
        assert_eq!(Request::decode(&body(&encode_start(&sent).unwrap())).unwrap(), Request::Start(sent));
        let job = Job::new(vec![1, -2, i16::MIN]);
        let wanted = Request::Job { id: 9, score: true, language: "en".into(), samples: vec![1, -2, i16::MIN] };
        assert_eq!(Request::decode(&body(&encode_job(9, &job).unwrap())).unwrap(), wanted);
    }

    #[test]
    fn a_job_of_more_than_30_seconds_is_cut_and_says_so() {
        let job = Job::new(vec![1; MAX_SAMPLES + 1]);
        assert!(job.is_too_long());
        let Request::Job { samples, .. } = Request::decode(&body(&encode_job(1, &job).unwrap())).unwrap() else { panic!() };
        assert_eq!(samples.len(), MAX_SAMPLES);
    }

    #[test]
    fn replies_arrive_as_they_were_sent() {
        let scores = vec![PhraseScore { id: 1, ll: -0.5 }];
        let heard = Heard { text: "Stop.".into(), free_ll: -0.1, tokens: 2, no_speech: 0.25, clipped: true, scores };
        let ms = Timings { mel: 1.0, encode: 2.0, free: 3.0, score: 4.0 };
        for reply in [
            Reply::Ready,
            Reply::Failed("no model".into()),
            Reply::Heard { id: 7, heard, ms },
            Reply::Refused { id: 8, why: "English only".into() },
        ] {
            assert_eq!(Reply::decode(&body(&reply.encode().unwrap())).unwrap(), reply);
        }
    }

    #[test]
    fn broken_frames_are_errors() {
        assert!(read_frame(&mut &[][..]).unwrap().is_none());
        assert!(read_frame(&mut &[5, 0, 0, 0, 1][..]).is_err());
        assert!(read_frame(&mut &[255, 255, 255, 255, 1][..]).is_err());
        assert!(read_frame(&mut &[0, 0, 0, 0][..]).is_err());
        for bytes in [&[][..], &[JOB], &[JOB, 1, 2], &[START, b'{'], &[9], &[HEARD], &[REFUSED, 1]] {
            assert!(Request::decode(bytes).is_err() && Reply::decode(bytes).is_err(), "{bytes:?}");
        }
        let mut odd = encode_job(1, &Job::new(vec![1])).unwrap();
        odd.pop();
        assert!(Request::decode(&odd[4..]).is_err());
    }
}
