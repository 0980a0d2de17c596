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

/// The style of a page and of a picture.
pub(crate) const STYLE: &str = include_str!("style.css");

/// A whole page; `body` is HTML.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n",
        title = Text(title)
    )
}

/// A table that scrolls by itself where it is larger than the window; its head stays in sight. `rows` is HTML.
pub(crate) fn table(rows: &str) -> String {
    format!("<div class=\"scroll\" tabindex=\"0\"><table>\n{rows}</table></div>\n")
}

/// The head of a table: the names of its columns.
pub(crate) fn head<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    format!("<thead>\n{}</thead>\n", column_names(names))
}

/// The head of a table: the names of its columns, and whether these are columns of words.
pub(crate) fn head_of<'a>(names: impl IntoIterator<Item = (&'a str, bool)>) -> String {
    let name = |(name, has_words)| {
        let class = if has_words { " class=\"words\"" } else { "" };
        format!("<th{class}>{}</th>", Text(name))
    };
    let names: String = names.into_iter().map(name).collect();
    format!("<thead>\n{}</thead>\n", row(&names))
}

/// The head of a table whose columns, but for the first, are in groups of the same names.
pub(crate) fn grouped_head(first: &str, groups: &[&str], names: &[&str]) -> String {
    let span = names.len();
    let lines = format!("<colgroup span=\"{span}\"></colgroup>").repeat(groups.len());
    let group = |name| format!("<th class=\"group\" colspan=\"{span}\">{}</th>", Text(name));
    let group_names: String = groups.iter().map(group).collect();
    let group_names = row(&format!("<th></th>{group_names}"));
    let names = column_names([&first].into_iter().chain(groups.iter().flat_map(|_| names)));
    format!("<colgroup></colgroup>{lines}\n<thead>\n{group_names}{names}</thead>\n")
}

fn column_names<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    let cells: String = names.into_iter().map(|name| format!("<th>{}</th>", Text(name))).collect();
    row(&cells)
}

/// A row of a table; `cells` is HTML.
pub(crate) fn row(cells: &str) -> String {
    format!("<tr>{cells}</tr>\n")
}

/// A table cell.
pub(crate) fn cell(text: impl Display) -> String {
    format!("<td>{}</td>", Text(text))
}

/// A table cell of words, which may take several lines.
pub(crate) fn words(text: impl Display) -> String {
    format!("<td class=\"words\">{}</td>", Text(text))
}

/// A table cell, red if it shows a failure.
pub(crate) fn judged(is_bad: bool, text: impl Display) -> String {
    if is_bad { format!("<td class=\"bad\">{}</td>", Text(text)) } else { cell(text) }
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
