//! Server-sent events: bytes as they come, data out as it was meant. Pure; the agents' HTTP side feeds it.
//!
//! Chunks may be cut anywhere, also inside a character or a line end. Only `data` fields are kept; comments and other fields
//! are skipped, as the HTML standard ("Server-sent events", section 9.2.6) reads them.

/// Longest single event, in bytes; a longer one is an error and not a larger buffer.
pub const EVENT_BYTES: usize = 1024 * 1024;

/// An event grew beyond [`EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {EVENT_BYTES} bytes")]
pub struct TooLong;

/// See the file's head.
#[derive(Debug, Default)]
pub struct SseReader {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    after_cr: bool,
}

impl SseReader {
    /// Takes a chunk and answers the `data` of each event it completes.
    ///
    /// # Errors
    /// [`TooLong`]; the reader is of no use then.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        for &byte in chunk {
            let second_half = std::mem::take(&mut self.after_cr) && byte == b'\n';
            match byte {
                b'\n' if second_half => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    events.extend(self.end_line());
                }
                _ => self.line.push(byte),
            }
            if self.line.len() + self.data.as_ref().map_or(0, Vec::len) > EVENT_BYTES {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    /// What is left when the stream ends: some servers leave out the last empty line.
    pub fn finish(&mut self) -> Option<String> {
        let event = self.end_line();
        event.or_else(|| self.take())
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.take();
        }
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if let Some(rest) = line.strip_prefix(b"data").filter(|r| r.is_empty() || r[0] == b':') {
            let value = rest.strip_prefix(b":").unwrap_or(rest);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => { data.push(b'\n'); data.extend_from_slice(value) }
                None => self.data = Some(value.to_vec()),
            }
        }
        None
    }

    fn take(&mut self) -> Option<String> { self.data.take().map(|d| String::from_utf8_lossy(&d).into_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = "\u{feff}data: {\"a\":\"é\"}\n\n: still here\nevent: x\nid: 3\ndata:one\r\ndata: two\r\n\r\ndata\n\ndatabase: no\n\ndata: [DONE]".as_bytes();

    fn all(chunk: usize) -> Vec<String> {
        let mut reader = SseReader::default();
        let mut out: Vec<String> = STREAM.chunks(chunk).flat_map(|c| reader.push(c).expect("short events")).collect();
        out.extend(reader.finish());
        out
    }

    #[test]
    fn chunks_may_be_cut_anywhere() {
        for chunk in 1..STREAM.len() + 1 {
            assert_eq!(all(chunk), ["{\"a\":\"é\"}", "one\ntwo", "", "[DONE]"], "chunks of {chunk}");
        }
    }

    #[test]
    fn an_event_without_end_is_an_error() {
        let mut reader = SseReader::default();
        assert_eq!(reader.push(&vec![b'x'; EVENT_BYTES + 1]), Err(TooLong));
        let mut reader = SseReader::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1000], b"\n"].concat();
        assert!((0..1100).any(|_| reader.push(&line).is_err()));
    }
}
