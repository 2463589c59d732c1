//! Reads a text file beneath one folder that the operator named, and nothing else.
//!
//! Names are relative, without `..`; links are followed first and judged by where they lead; what was opened is checked once
//! more by the name the system gives it, so that a link swapped in between opens nothing. Special files are refused.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::BuiltinContext;
use crate::engine::tool::ToolOutcome;

/// Largest file that is read, in bytes.
const FILE_BYTES: u64 = 256 * 1024;
/// Characters of it that are given, so that the result stays within its bound.
const GIVEN_CHARS: usize = 6_000;
/// Names looked through for one that was said and not typed.
const NAMES_MAX: usize = 1_000;

/// `{path, text, truncated}`.
pub fn read(context: &BuiltinContext, arguments: &Value) -> ToolOutcome {
    let Some(root) = &context.files_root else {
        return ToolOutcome::failed("files_not_configured", "No folder is set up for reading files; name one in the configuration under tools.");
    };
    let asked = arguments["path"].as_str().unwrap_or_default();
    let found = open_beneath(root, asked).or_else(|first| match (first, spoken_name(root, asked)) {
        (Denied::Missing, Some(name)) => open_beneath(root, &name),
        (first, _) => Err(first),
    });
    match found.and_then(text_of) {
        Ok((text, truncated)) => ToolOutcome::ok(json!({"success": true, "path": asked, "text": text, "truncated": truncated})),
        Err(denied) => ToolOutcome::failed(denied.code(), denied.to_string()),
    }
}

/// Why a file was not read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Denied {
    /// Absolute, with `..`, a zero byte, or a link that leads out.
    #[error("That name leads outside the folder for files.")]
    Outside,
    /// Nothing of that name.
    #[error("There is no such file in the folder for files.")]
    Missing,
    /// A folder, a pipe, a device.
    #[error("That is no plain file.")]
    NotAFile,
    /// The name of the file or of a folder on the way begins with a dot: keys and settings live in such.
    #[error("Hidden files are not read.")]
    Hidden,
    /// More bytes than are read.
    #[error("That file is larger than 256 kilobytes.")]
    TooLarge,
    /// Not UTF-8, or with zero bytes.
    #[error("That file holds no text.")]
    NotText,
    /// The system said no.
    #[error("That file could not be read.")]
    Unreadable,
}

impl Denied {
    fn code(&self) -> &'static str {
        match self {
            Denied::Outside => "outside_root", Denied::Missing => "no_such_file", Denied::NotAFile => "not_a_file", Denied::Hidden => "hidden_file",
            Denied::TooLarge => "file_too_large", Denied::NotText => "not_text", Denied::Unreadable => "unreadable",
        }
    }
}

impl From<io::Error> for Denied {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Denied::Missing,
            _ => Denied::Unreadable,
        }
    }
}

fn open_beneath(root: &Path, asked: &str) -> Result<File, Denied> {
    let relative = Path::new(asked);
    let plain = relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if asked.trim().is_empty() {
        return Err(Denied::Missing);
    }
    if !plain || asked.contains('\0') {
        return Err(Denied::Outside);
    }
    let root = fs::canonicalize(root)?;
    let real = fs::canonicalize(root.join(relative))?;
    open_to_see(&root, &real)?;
    // Before opening: to open a pipe would wait for its writer.
    if !fs::symlink_metadata(&real)?.is_file() {
        return Err(Denied::NotAFile);
    }
    let file = File::open(&real)?;
    open_to_see(&root, &opened_path(&file, &real)?)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(Denied::NotAFile) }
}

/// Beneath the root by whole names, none of which is hidden.
fn open_to_see(root: &Path, real: &Path) -> Result<(), Denied> {
    let inner = real.strip_prefix(root).map_err(|_| Denied::Outside)?;
    let hidden = inner.components().any(|c| c.as_os_str().as_encoded_bytes().starts_with(b"."));
    if hidden { Err(Denied::Hidden) } else { Ok(()) }
}

/// Where the open file really is.
#[cfg(target_os = "linux")]
fn opened_path(file: &File, _: &Path) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Where the open file really is: the name leads to the very file that is open, or nowhere.
#[cfg(not(target_os = "linux"))]
fn opened_path(file: &File, real: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let (now, then) = (fs::symlink_metadata(real)?, file.metadata()?);
    if (now.dev(), now.ino()) == (then.dev(), then.ino()) { fs::canonicalize(real) } else { Ok(PathBuf::new()) }
}

fn text_of(file: File) -> Result<(String, bool), Denied> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(Denied::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|_| Denied::NotText)?;
    if text.contains('\0') {
        return Err(Denied::NotText);
    }
    let given: String = text.chars().take(GIVEN_CHARS).collect();
    let truncated = given.len() < text.len();
    Ok((given, truncated))
}

/// The file of the folder itself that was meant by words: "Shopping list dot text" is `shopping-list.txt`.
fn spoken_name(root: &Path, asked: &str) -> Option<String> {
    let letters = |text: &str| text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let said = asked.to_lowercase().replace(" dot text", " dot txt").replace(" dot ", " ");
    let wanted = letters(&said);
    let names = fs::read_dir(root).ok()?.flatten().take(NAMES_MAX).map(|e| e.file_name().to_string_lossy().into_owned());
    let mut fitting = names.filter(|n| !n.starts_with('.') && !wanted.is_empty())
        .filter(|n| letters(n) == wanted || n.rsplit_once('.').is_some_and(|(stem, _)| letters(stem) == wanted));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first)
}

/// Names of files at the top of the folder, at most `most`; none when there is no folder.
pub fn names(context: &BuiltinContext, most: usize) -> Vec<String> {
    let Some(entries) = context.files_root.as_ref().and_then(|root| std::fs::read_dir(root).ok()) else { return Vec::new() };
    let names = entries.take(10 * most).filter_map(Result::ok).filter(|e| e.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> = names.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names.truncate(most);
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn code(context: &BuiltinContext, path: &str) -> String {
        let outcome = read(context, &json!({"path": path}));
        assert!(!outcome.output.to_string().contains("swordfish"), "{path}: {}", outcome.output);
        outcome.error_code
    }

    fn world() -> (tempfile::TempDir, BuiltinContext) {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("sub")).expect("a folder");
        fs::create_dir_all(dir.path().join("root-and-more")).expect("a folder");
        fs::write(dir.path().join("secret.txt"), "swordfish").expect("a file");
        fs::write(dir.path().join("root-and-more/secret.txt"), "swordfish").expect("a file");
        fs::write(root.join("Shopping-list.txt"), "eggs").expect("a file");
        fs::write(root.join("sub/a.md"), "inner").expect("a file");
        (dir, BuiltinContext { notes_dir: PathBuf::new(), files_root: Some(root) })
    }

    #[test]
    fn files_beneath_the_root_are_read() {
        let (dir, context) = world();
        symlink("sub/a.md", dir.path().join("root/inside")).expect("a link");
        for (path, text) in [("Shopping-list.txt", "eggs"), ("./sub/a.md", "inner"), ("inside", "inner"), ("shopping list dot text", "eggs"), ("shopping list", "eggs")] {
            assert_eq!(read(&context, &json!({"path": path})).output["text"], text, "{path}");
        }
    }

    #[test]
    fn nothing_outside_is_read() {
        let (dir, context) = world();
        let root = dir.path().join("root");
        symlink(dir.path().join("secret.txt"), root.join("out")).expect("a link");
        symlink(dir.path(), root.join("up")).expect("a link");
        fs::create_dir(root.join(".keys")).expect("a folder");
        fs::write(root.join(".keys/a"), "swordfish").expect("a file");
        symlink(".keys/a", root.join("shown")).expect("a link");
        symlink("loop", root.join("loop")).expect("a link");
        let absolute = dir.path().join("secret.txt").display().to_string();
        for path in ["../secret.txt", "sub/../../secret.txt", &absolute, "out", "up/secret.txt", "../root-and-more/secret.txt", "/proc/self/environ", "/etc/passwd", "a\0b"] {
            assert_eq!(code(&context, path), "outside_root", "{path}");
        }
        for path in [".keys/a", "shown"] { assert_eq!(code(&context, path), "hidden_file", "{path}"); }
        for path in ["", "nothing", "loop/x", "Shopping-list.txt/x"] {
            assert!(["no_such_file", "outside_root", "unreadable"].contains(&code(&context, path).as_str()), "{path}");
        }
    }

    #[test]
    fn a_link_swapped_all_the_time_never_opens_the_outside() {
        let (dir, context) = world();
        let (root, link) = (dir.path().join("root"), dir.path().join("root/swap"));
        let (good, bad) = (root.join("sub"), dir.path().to_path_buf());
        fs::write(good.join("secret.txt"), "fine").expect("a file");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for target in [&good, &bad] {
                    let _ = fs::remove_file(&link);
                    let _ = symlink(target, &link);
                }
            });
            for _ in 0..3_000 { code(&context, "swap/secret.txt"); }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn only_small_plain_text_is_read() {
        let (dir, context) = world();
        let root = dir.path().join("root");
        fs::write(root.join("big.txt"), "x".repeat(FILE_BYTES as usize + 1)).expect("a file");
        fs::write(root.join("bytes.txt"), [0xff, 0xfe, 0x00]).expect("a file");
        fs::write(root.join("zero.txt"), "a\0b").expect("a file");
        fs::write(root.join("long.txt"), "y".repeat(GIVEN_CHARS + 1)).expect("a file");
        assert_eq!(code(&context, "big.txt"), "file_too_large");
        assert_eq!(code(&context, "bytes.txt"), "not_text");
        assert_eq!(code(&context, "zero.txt"), "not_text");
        assert_eq!(code(&context, "sub"), "not_a_file");
        assert_eq!(read(&context, &json!({"path": "long.txt"})).output["truncated"], true);
        assert_eq!(code(&BuiltinContext::default(), "a"), "files_not_configured");
    }
}
