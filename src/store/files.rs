//! Files that only their owner may read, and whole-file writes that a crash cannot leave half done.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Makes a folder and those above it, readable by the owner alone. Folders that exist keep their mode.
pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Options that create files readable by the owner alone.
pub(super) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Takes the rights of everybody but the owner away. True when there were any.
pub(super) fn tighten(path: &Path, folder: bool) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(if folder { 0o700 } else { 0o600 }))?;
            return Ok(true);
        }
    }
    let _ = (path, folder);
    Ok(false)
}

/// Writes a whole file: beside it, to the disk, then in its place, then the folder to the disk. The old content stays
/// until the new one is whole.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path, "tmp");
    let written = write_and_sync(&beside, bytes).and_then(|()| fs::rename(&beside, path)).and_then(|()| sync_parent(path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Writes a new or emptied file and waits until the disk has it.
pub(super) fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private_options().write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits until the disk knows the names in the folder of `path`.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// The same path with something more at its end.
pub(super) fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".");
    name.push(more);
    name.into()
}

/// Reads a file that may be absent, at most `most` bytes of it.
pub(super) fn read_some(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    use std::io::Read;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {most} bytes")));
    }
    Ok(Some(bytes))
}

/// Puts a file that cannot be read out of the way, under a name that says so. Answers where it is now.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let to = aside_name(path);
    fs::rename(path, &to)?;
    sync_parent(path)?;
    Ok(to)
}

/// A free name for a damaged copy; the ninth is overwritten, so that a file broken again and again fills no disk.
pub(super) fn aside_name(path: &Path) -> PathBuf {
    (1..9).map(|n| beside(path, &format!("damaged-{n}"))).find(|p| !p.exists()).unwrap_or_else(|| beside(path, "damaged-9"))
}
