//! Sound files as microphone and speaker.
//!
//! Owns the open file. Called by `talk --mic FILE --speaker FILE`. The microphone file is read whole and checked before anything
//! starts; the speaker file grows as it is written and is a valid WAV after `close` (and readable to its end without it).

use super::AudioError;
use crate::media::frame::{frame_len, ms_of};
use crate::media::wav::{self, Wav};
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Largest microphone file, in bytes (3 hours of mono at 48 kHz).
const MAX_FILE: u64 = 1 << 30;

/// A microphone that is a file.
#[derive(Clone, Debug)]
pub struct MicFile {
    wav: Wav,
    at: usize,
}

impl MicFile {
    /// Reads and checks a WAV file: 8 to 96 kHz, any usual sample size, any channels.
    ///
    /// # Errors
    /// [`AudioError::Unreadable`] or [`AudioError::NotASound`].
    pub fn open(path: &Path) -> Result<Self, AudioError> {
        let unreadable = |reason: String| AudioError::Unreadable { path: path.into(), reason };
        let file = File::open(path).map_err(|e| unreadable(for_a_person(&e)))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(unreadable("it is a folder".into()));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| unreadable(for_a_person(&e)))?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(unreadable("it is larger than 1 GiB".into()));
        }
        let wav = wav::parse(&bytes).map_err(|source| AudioError::NotASound { path: path.into(), source })?;
        Ok(Self { wav, at: 0 })
    }

    /// Samples a second.
    pub fn rate_hz(&self) -> u32 {
        self.wav.rate_hz
    }

    /// What was changed or missing when it was read (mixed channels, a cut end), for a person.
    pub fn notes(&self) -> &[String] {
        &self.wav.notes
    }

    /// Its length in milliseconds.
    pub fn length_ms(&self) -> u64 {
        ms_of(self.wav.samples.len() as u64, self.wav.rate_hz)
    }

    /// Its length in samples.
    pub fn length(&self) -> u64 {
        self.wav.samples.len() as u64
    }

    /// The samples from `from` to `to`, as far as there are any.
    pub fn between(&self, from: u64, to: u64) -> &[i16] {
        let end = self.wav.samples.len();
        let clamp = |at: u64| usize::try_from(at).unwrap_or(end).min(end);
        &self.wav.samples[clamp(from)..clamp(to.max(from))]
    }

    /// The next 20 ms (the last frame is filled up with silence); `None` at the end.
    pub fn next_frame(&mut self) -> Option<Vec<i16>> {
        let length = frame_len(self.wav.rate_hz);
        let rest = self.wav.samples.get(self.at..).filter(|r| !r.is_empty())?;
        let mut frame = rest[..length.min(rest.len())].to_vec();
        frame.resize(length, 0);
        self.at += length;
        Some(frame)
    }
}

/// A speaker that is a file: mono i16.
#[derive(Debug)]
pub struct SpeakerFile {
    file: BufWriter<File>,
    path: PathBuf,
    rate_hz: u32,
    samples: u64,
    closed: bool,
}

impl SpeakerFile {
    /// Creates the file, or empties the one that is there.
    ///
    /// # Errors
    /// [`AudioError::Unwritable`].
    pub fn create(path: &Path, rate_hz: u32) -> Result<Self, AudioError> {
        let unwritable = |e: std::io::Error| AudioError::Unwritable { path: path.into(), reason: for_a_person(&e) };
        let mut file = BufWriter::new(File::create(path).map_err(unwritable)?);
        file.write_all(&wav::header(rate_hz, 0)).map_err(unwritable)?;
        Ok(Self { file, path: path.into(), rate_hz, samples: 0, closed: false })
    }

    /// Appends mono i16 at the file's rate.
    ///
    /// # Errors
    /// [`AudioError::Unwritable`], for instance when the disk is full.
    pub fn write(&mut self, pcm: &[i16]) -> Result<(), AudioError> {
        for sample in pcm {
            self.file.write_all(&sample.to_le_bytes()).map_err(|e| self.unwritable(&e))?;
        }
        self.samples += pcm.len() as u64;
        Ok(())
    }

    /// How much was written, in milliseconds.
    pub fn played_ms(&self) -> u64 {
        ms_of(self.samples, self.rate_hz)
    }

    /// Writes the length into the header and closes.
    ///
    /// # Errors
    /// [`AudioError::Unwritable`].
    pub fn close(mut self) -> Result<(), AudioError> {
        self.patch().map_err(|e| self.unwritable(&e))
    }

    fn patch(&mut self) -> std::io::Result<()> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        // A pipe or a terminal cannot go back: there the header stays open-ended.
        if self.file.get_ref().metadata()?.is_file() {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&wav::header(self.rate_hz, self.samples))?;
        }
        self.file.flush()
    }

    fn unwritable(&self, e: &std::io::Error) -> AudioError {
        AudioError::Unwritable { path: self.path.clone(), reason: for_a_person(e) }
    }
}

impl Drop for SpeakerFile {
    fn drop(&mut self) {
        let _ = self.patch();
    }
}

fn for_a_person(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::NotFound => "there is no such file or folder".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        std::io::ErrorKind::IsADirectory => "it is a folder".into(),
        _ => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoken_into_a_file_is_heard_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.wav");
        let mut speaker = SpeakerFile::create(&path, 22_050).unwrap();
        speaker.write(&[1; 441]).unwrap();
        speaker.write(&[2; 100]).unwrap();
        assert_eq!(speaker.played_ms(), 24);
        speaker.close().unwrap();
        let mut mic = MicFile::open(&path).unwrap();
        assert_eq!((mic.rate_hz(), mic.length_ms(), mic.notes().len()), (22_050, 24, 0));
        assert_eq!(mic.next_frame().unwrap(), [1; 441]);
        assert_eq!(mic.next_frame().unwrap(), [vec![2; 100], vec![0; 341]].concat());
        assert!(mic.next_frame().is_none() && mic.next_frame().is_none());
    }

    #[test]
    fn a_speaker_that_is_dropped_leaves_a_whole_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.wav");
        SpeakerFile::create(&path, 16_000).unwrap().write(&[3; 320]).unwrap();
        assert!(!MicFile::open(&path).unwrap().wav.truncated);
    }

    #[test]
    fn trouble_is_said_for_a_person() {
        let dir = tempfile::tempdir().unwrap();
        let said = |p: &Path| MicFile::open(p).unwrap_err().to_string();
        assert!(said(&dir.path().join("no.wav")).ends_with("no.wav: there is no such file or folder"));
        assert!(said(dir.path()).ends_with("it is a folder"));
        let empty = dir.path().join("empty.wav");
        std::fs::write(&empty, b"").unwrap();
        assert!(said(&empty).ends_with("it is empty (0 bytes)"));
        let e = SpeakerFile::create(&dir.path().join("no/out.wav"), 16_000).unwrap_err().to_string();
        assert!(e.contains("cannot write the speaker file") && e.ends_with("there is no such file or folder"), "{e}");
        assert!(SpeakerFile::create(dir.path(), 16_000).is_err());
    }
}
