//! Standard output, for all commands. A reader that has gone (`voxgate ... | head`) is no mistake of ours: what it does not want is
//! dropped, and the command ends as it would have.
//!
//! Writes and never computes. What is told beside the result goes to stderr.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Writes this at once. False: nobody reads any more. A disk that is full under a file ends the command with exit code 1 and a line
/// on stderr, so that half a file is never taken for a whole one.
pub fn put(text: Arguments<'_>) -> bool {
    let mut out = std::io::stdout().lock();
    match put_into(&mut out, text) {
        Ok(wanted) => wanted,
        Err(error) => {
            eprintln!("voxgate: standard output cannot be written: {error}");
            std::process::exit(1)
        }
    }
}

fn put_into(out: &mut impl Write, text: Arguments<'_>) -> std::io::Result<bool> {
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// A line on standard output: `println!` without the panic.
macro_rules! outln {
    ($($text:tt)*) => {{ let _ = $crate::cli::out::put(format_args!("{}\n", format_args!($($text)*))); }};
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> { Err(self.0.into()) }
        fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is() {
        let mut whole = Vec::new();
        assert!(matches!(put_into(&mut whole, format_args!("{}\n", "one")), Ok(true)));
        assert_eq!(whole, b"one\n");
        assert!(matches!(put_into(&mut Broken(ErrorKind::BrokenPipe), format_args!("two")), Ok(false)));
        assert!(put_into(&mut Broken(ErrorKind::StorageFull), format_args!("three")).is_err());
    }
}
