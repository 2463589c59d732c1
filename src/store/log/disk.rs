//! What the log's writer needs of a file, so that its tests can stand a failing disk in its place.

use std::fs::File;
use std::io::{self, Write};

/// A file that grows at its end.
pub trait Disk: Send {
    /// Adds all of it at the end.
    ///
    /// # Errors
    /// What the system says; part of it may have been added.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Waits until the disk has what was added.
    ///
    /// # Errors
    /// What the system says; nothing is known of what was added since the last success.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts it to a length.
    ///
    /// # Errors
    /// What the system says.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// Opened for appending: every write lands at the end, also after a cut.
impl Disk for File {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> { self.write_all(bytes) }
    fn sync(&mut self) -> io::Result<()> { self.sync_data() }
    fn cut(&mut self, length: u64) -> io::Result<()> { self.set_len(length) }
}
