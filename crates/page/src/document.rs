//! The frame of a page, and text that cannot break out of it.

use std::fmt::{self, Display};

/// Text with HTML's special characters escaped, also safe inside a double-quoted attribute.
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.to_string().chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // HTML allows no control characters, not even as numeric references.
                c if c.is_control() && c != '\n' && c != '\t' => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// A whole page; `body` is HTML.
pub(crate) fn document(title: &str, body: &str) -> String {
    let style = include_str!("style.css");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n",
        title = Text(title)
    )
}

/// A table cell; `class` is one of the style's classes.
pub(crate) fn cell(class: &str, text: impl Display) -> String {
    match class {
        "" => format!("<td>{}</td>", Text(text)),
        _ => format!("<td class=\"{class}\">{}</td>", Text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        let text = Text("<script>\"a\" & 'b'\u{1}").to_string();
        assert_eq!(text, "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\u{fffd}");
    }
}
