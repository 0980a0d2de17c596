//! Paths in commands that are suggested to the user.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path as one word of a shell that moves no cursor.
pub fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:@".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return path.display().to_string();
    }
    match path.to_str() {
        Some(text) if !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        // Words of this form are escaped by the shell; bash, zsh and POSIX 2024 have them.
        _ => format!("$'{}'", bytes.iter().map(|byte| escaped(*byte)).collect::<String>()),
    }
}

fn escaped(byte: u8) -> String {
    match byte {
        b'\\' | b'\'' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        // Three digits at most, so that what follows is no part of it.
        _ => format!("\\{byte:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_plain_path_stays_as_it_is() {
        assert_eq!(quoted(Path::new("/mnt/data-1.x")), "/mnt/data-1.x");
    }

    #[test]
    fn a_shell_takes_a_quoted_path_as_one_word_and_does_nothing_else() {
        let evil: [&[u8]; 5] = [
            b"/m $(id);x",
            b"/it's `id`",
            b"/a\x1b[31m1'\\\n2",
            b"/\xff\xfe$HOME",
            "/\u{e9}\u{9b}7".as_bytes(),
        ];
        for bytes in evil {
            let word = quoted(Path::new(OsStr::from_bytes(bytes)));
            assert!(!word.chars().any(char::is_control), "{word:?}");
            let output = Command::new("bash").args(["-c", &format!("printf %s {word}")]).output();
            assert_eq!(output.expect("bash runs").stdout, bytes, "{word}");
        }
    }
}
