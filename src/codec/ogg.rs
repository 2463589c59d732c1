//! Ogg Opus files (RFC 7845), written as the sound comes.
//!
//! Owns the two headers, the page a second and the mark at the end. Called by the recording of a conversation. A file whose writer
//! died is whole up to its last page and plays.

use std::io::{self, Write};

use ogg::writing::{PacketWriteEndInfo, PacketWriter};

use super::Keep;

/// Sound of one page, in samples at 48 kHz: a second, which is what a crash can cost.
const PAGE: u64 = 48_000;

/// See the file's head.
pub(super) struct OggOpus<W: Write> {
    writer: PacketWriter<'static, W>,
    serial: u32,
    /// The last packet, which may turn out to be the end.
    pending: Option<(Vec<u8>, u64)>,
    written: u64,
    paged: u64,
}

impl<W: Write> OggOpus<W> {
    /// Writes the headers. `skip`: samples at the start that are the encoder's delay and no sound.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn new(to: W, serial: u32, channels: u8, skip: u16) -> io::Result<Self> {
        let mut writer = PacketWriter::new(to);
        let mut head = b"OpusHead\x01".to_vec();
        head.push(channels);
        head.extend(skip.to_le_bytes());
        head.extend(48_000u32.to_le_bytes());
        // No gain; mapping family 0: one or two channels as they are.
        head.extend([0, 0, 0]);
        writer.write_packet(head, serial, PacketWriteEndInfo::EndPage, 0)?;
        let mut tags = b"OpusTags".to_vec();
        let vendor = b"voxgate";
        tags.extend((vendor.len() as u32).to_le_bytes());
        tags.extend(vendor);
        let comment = b"COMMENT=left: the microphone, right: what was played";
        tags.extend(1u32.to_le_bytes());
        tags.extend((comment.len() as u32).to_le_bytes());
        tags.extend(comment);
        writer.write_packet(tags, serial, PacketWriteEndInfo::EndPage, 0)?;
        writer.inner_mut().flush()?;
        Ok(Self { writer, serial, pending: None, written: 0, paged: 0 })
    }

    fn put(&mut self, last: bool) -> io::Result<()> {
        let Some((packet, end)) = self.pending.take() else { return Ok(()) };
        let page = end - self.paged >= PAGE;
        let info = match (last, page) {
            (true, _) => PacketWriteEndInfo::EndStream,
            (_, true) => PacketWriteEndInfo::EndPage,
            _ => PacketWriteEndInfo::NormalPacket,
        };
        self.writer.write_packet(packet, self.serial, info, end)?;
        if last || page {
            self.paged = end;
            self.writer.inner_mut().flush()?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Keep for OggOpus<W> {
    fn packet(&mut self, packet: Vec<u8>, samples: u32) -> io::Result<()> {
        self.put(false)?;
        self.written += u64::from(samples);
        self.pending = Some((packet, self.written));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> { self.put(true) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogg::reading::PacketReader;

    #[test]
    fn a_file_has_its_headers_a_page_a_second_and_an_end() {
        let mut bytes = Vec::new();
        let mut file = OggOpus::new(&mut bytes, 7, 2, 312).unwrap();
        for n in 0..175u8 { file.packet(vec![n; 3], 960).unwrap() }
        file.finish().unwrap();
        drop(file);
        let mut reader = PacketReader::new(io::Cursor::new(&bytes));
        let packets: Vec<_> = std::iter::from_fn(|| reader.read_packet().unwrap()).collect();
        assert_eq!(packets.len(), 177);
        assert_eq!(packets[0].data, b"OpusHead\x01\x02\x38\x01\x80\xbb\x00\x00\x00\x00\x00");
        assert!(packets[1].data.starts_with(b"OpusTags\x07\x00\x00\x00voxgate"));
        assert!(packets[176].last_in_stream() && packets[176].absgp_page() == 175 * 960);
        assert_eq!(packets.iter().filter(|p| p.last_in_page()).count(), 2 + 4);
    }

    #[test]
    fn what_was_written_before_a_crash_is_whole() {
        let mut bytes = Vec::new();
        let mut file = OggOpus::new(&mut bytes, 7, 1, 312).unwrap();
        for _ in 0..120 { file.packet(vec![1; 30], 960).unwrap() }
        drop(file);
        let mut reader = PacketReader::new(io::Cursor::new(&bytes));
        let mut read = 0;
        while let Ok(Some(_)) = reader.read_packet() { read += 1 }
        assert_eq!(read, 2 + 100);
    }
}
