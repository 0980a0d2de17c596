//! Patterns of paths: `*` is any part of a name, `**` any part of a path, `?` one character.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Char(char),
    /// One character of a name.
    One,
    /// Any number of characters of a name.
    Name,
    /// Any number of any characters.
    Path,
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut letters = pattern.chars().peekable();
    let mut parts = Vec::new();
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            '*' if letters.next_if_eq(&'*').is_some() => Part::Path,
            '*' => Part::Name,
            '?' => Part::One,
            other => Part::Char(other),
        });
    }
    parts
}

/// Whether the whole path matches. Follows all ways to read the pattern at once, one character of the path after the
/// other. So no pattern takes longer than its length times that of the path.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let parts = parts(pattern);
    // Whether the path so far matches all parts before this one.
    let mut reached = vec![false; parts.len() + 1];
    reached[0] = true;
    skip_stars(&parts, &mut reached);
    let mut next = vec![false; reached.len()];
    for letter in path.chars() {
        next.fill(false);
        for (at, part) in parts.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match part {
                Part::Char(wanted) => next[at + 1] |= *wanted == letter,
                Part::One => next[at + 1] |= letter != '/',
                Part::Name => next[at] |= letter != '/',
                Part::Path => next[at] = true,
            }
        }
        skip_stars(&parts, &mut next);
        std::mem::swap(&mut reached, &mut next);
    }
    reached[parts.len()]
}

/// Stars may match nothing.
fn skip_stars(parts: &[Part], reached: &mut [bool]) {
    for (at, part) in parts.iter().enumerate() {
        reached[at + 1] |= reached[at] && matches!(part, Part::Name | Part::Path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_a_name_and_two_do_not() {
        for (pattern, fits) in [
            ("/srv/**", true),
            ("/srv/*", false),
            ("/srv/*/*.mkv", true),
            ("/srv/films/?.mkv", true),
            ("/srv/film?a.mkv", false),
            ("/srv", false),
            ("/**/a.mkv", true),
        ] {
            assert_eq!(matches(pattern, "/srv/films/a.mkv"), fits, "{pattern}");
        }
    }

    #[test]
    fn stars_may_be_nothing_and_must_be_enough() {
        for (pattern, path, fits) in [
            ("/a*", "/a", true),
            ("/a**", "/a", true),
            ("/a*b*c", "/abbbc", true),
            ("/a*b*c", "/abbb", false),
            ("/*/b**d", "/a/b/c/d", true),
            ("/*b/c", "/ab/b/c", false),
            ("/**b/c", "/ab/b/c", true),
            ("", "/", false),
        ] {
            assert_eq!(matches(pattern, path), fits, "{pattern} {path}");
        }
    }

    /// Trying all ways would take longer than the age of the universe.
    #[test]
    fn a_hostile_pattern_takes_no_longer_than_another() {
        let path = format!("/{}", "a".repeat(4000));
        assert!(!matches(&format!("/{}b", "*a".repeat(100)), &path));
        assert!(!matches(&format!("/{}b", "**a".repeat(100)), &path));
        assert!(matches(&format!("/{}*", "**a*".repeat(100)), &path));
    }
}
