//! Each command's `--help`, man page and page of the docs describe the same options. ARCHITECTURE.md names functions
//! that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

const BOWWAVE: &str = env!("CARGO_BIN_EXE_bowwave");

/// What bowwave prints.
fn printed(words: &[&str]) -> String {
    let output = Command::new(BOWWAVE).args(words).output().expect("it runs");
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The commands that a help lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    let names = listed.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The commands of bowwave, each as its words: `lab`, `up`.
fn all_commands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut to_look_at = vec![Vec::new()];
    while let Some(words) = to_look_at.pop() {
        let help = help(&words);
        for name in commands(&help) {
            to_look_at.push([words.clone(), vec![name]].concat());
        }
        found.push(words);
    }
    found
}

fn help(command: &[String]) -> String {
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    printed(&words)
}

/// Lines that begin with an option, without what indents them; of each, its names such as `-v` and `--verbose`.
fn options<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<Vec<String>> {
    let described = lines.map(str::trim).filter(|line| line.starts_with('-'));
    let names = |line: &str| {
        // The description follows after two spaces.
        let named = line.split("  ").next().unwrap_or_default();
        let words = named
            .split([' ', ',', '=', '['])
            .filter(|word| word.starts_with('-') && word.len() > 1);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    described.map(names).filter(|names| !names.is_empty()).collect()
}

/// Text of a man page, without its formatting.
fn plain(roff: &str) -> String {
    roff.replace("\\fB", "").replace("\\fR", "").replace("\\fI", "").replace("\\-", "-")
}

#[test]
fn help_man_page_and_docs_agree() {
    let share = tempfile::tempdir().expect("a folder");
    printed(&["generate", share.path().to_str().expect("text")]);
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let commands = all_commands();
    for command in &commands {
        let help = help(command);
        let name: String = command.iter().map(|word| format!("-{word}")).collect();
        let page = share.path().join(format!("man/man1/bowwave{name}.1"));
        let page =
            plain(&fs::read_to_string(&page).unwrap_or_else(|error| panic!("{page:?}: {error}")));
        let described = options(help.lines().filter(|line| line.starts_with("  ")));
        assert_eq!(options(page.lines()), described, "bowwave{name}(1)");
        let Some(topic) = command.first() else { continue };
        let topic = docs.join(format!("{topic}.md"));
        let text = fs::read_to_string(&topic).unwrap_or_else(|error| panic!("{topic:?}: {error}"));
        for names in described.iter().filter(|names| !names.contains(&"--help".into())) {
            let is_there = names.iter().any(|name| text.contains(name.as_str()));
            assert!(is_there, "{} lacks {names:?} of bowwave{name}", topic.display());
        }
    }
    let pages = fs::read_dir(share.path().join("man/man1")).expect("made").count();
    assert_eq!(pages, commands.len(), "a page for each command, and no others");
}

#[test]
fn docs_of_a_command_name_only_its_own_options() {
    let mut own: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for command in all_commands() {
        let help = help(&command);
        let described = options(help.lines().filter(|line| line.starts_with("  ")));
        let topic = command.into_iter().next().unwrap_or_default();
        own.entry(topic).or_default().extend(described.into_iter().flatten());
    }
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    for page in own.keys().filter(|page| !page.is_empty()) {
        let text = fs::read_to_string(docs.join(format!("{page}.md"))).expect("it is there");
        // Options stand in a line of a bowwave command, or alone.
        let lines = text.lines().filter(|line| line.contains("bowwave ") || line.contains("`--"));
        for line in lines.filter(|line| !line.contains("cargo ")) {
            // What follows a -- belongs to another command.
            let line = line.split(" -- ").next().unwrap_or_default();
            let is_meant =
                |topic: &str| topic == page || line.contains(&format!("bowwave {topic}"));
            let known = own.iter().filter(|(topic, _)| is_meant(topic));
            let known: BTreeSet<&String> = known.flat_map(|(_, options)| options).collect();
            let words = line.split([' ', '`', '=', '[', ']', '|', ',', '.', ':', ';', '(', ')']);
            for word in words.filter(|word| word.starts_with("--")) {
                let is_known = word.len() == 2 || known.iter().any(|known| *known == word);
                assert!(is_known, "docs/{page}.md: {word} in {line}");
            }
        }
    }
}

/// Function and file of each numbered step in the tables of ARCHITECTURE.md.
fn steps(architecture: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    for line in architecture.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", number, function, file, _, ""] = cells[..]
            && number.parse::<u32>().is_ok()
        {
            let last = steps.last().map(|(_, file)| file.clone());
            let file = if file == "the same" { last.expect("a file") } else { file.to_owned() };
            steps.push((function.trim_matches('`').to_owned(), file));
        }
    }
    steps
}

#[test]
fn each_step_of_a_path_is_a_function_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).expect(path);
    let steps = steps(&read("ARCHITECTURE.md"));
    assert!(steps.len() > 8, "{steps:?}");
    for (function, file) in steps {
        let name = function.rsplit("::").next().unwrap_or_default();
        let begins = |line: &str| {
            let is_c = file.ends_with(".c") && line.contains(&format!(" {name}("));
            is_c || line.contains(&format!("fn {name}(")) || line.contains(&format!("fn {name}<"))
        };
        assert!(read(&file).lines().any(begins), "{function} is not in {file}");
    }
}

/// Full names of the tests in a file or folder, as `cargo test` filters them.
fn tests_in(place: &Path, module: &str, names: &mut Vec<String>) {
    if place.is_dir() {
        for entry in fs::read_dir(place).expect("a folder").flatten() {
            let name = entry.file_name().into_string().expect("text");
            let name = name.trim_end_matches(".rs");
            tests_in(&entry.path(), &format!("{module}::{name}"), names);
        }
    } else if place.extension().is_some_and(|it| it == "rs") {
        let text = fs::read_to_string(place).expect("text");
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            is_test |= line == "#[test]";
            if let Some(function) = line.strip_prefix("fn ").filter(|_| is_test) {
                let name = function.split(['(', '<']).next().unwrap_or_default();
                names.push(format!("{module}::{name}"));
                is_test = false;
            }
        }
    }
}

/// The tests that a `cargo test` command of docs/trust.md runs.
fn tests_of(command: &str) -> Vec<String> {
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut words = command.split(' ').skip_while(|word| *word != "-p").skip(1);
    let package = words.next().expect("a package");
    let folder = crates.join(package.trim_start_matches("bowwave-"));
    let (mut places, mut filters) = (vec![folder.join("src"), folder.join("tests")], Vec::new());
    while let Some(word) = words.next() {
        match word {
            "--lib" => places = vec![folder.join("src")],
            "--bin" => {
                words.next();
                places = vec![folder.join("src")];
            }
            "--test" => {
                let program = folder.join("tests").join(words.next().expect("a program"));
                let file = program.with_extension("rs");
                let text = fs::read_to_string(&file).unwrap_or_default();
                let parts =
                    text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
                places = parts.map(|part| folder.join("tests").join(part)).collect();
                places.extend([program, file]);
            }
            filter => filters.push(filter),
        }
    }
    let mut names = Vec::new();
    for place in places.iter().filter(|place| place.exists()) {
        tests_in(place, "", &mut names);
    }
    names.retain(|name| filters.iter().all(|filter| name.contains(filter)));
    names
}

#[test]
fn each_claim_of_trust_names_a_test_that_there_is() {
    let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trust.md"));
    let text = fs::read_to_string(page).expect("the page");
    let cells = text.lines().filter(|line| line.starts_with("| ")).flat_map(|line| line.split('|'));
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let commands: Vec<String> = quoted
        .filter(|text| text.starts_with("cargo test ") || text.starts_with("... "))
        .map(|text| text.replacen("...", "cargo test -p bowwave --test", 1))
        .collect();
    assert!(commands.len() > 40, "{commands:?}");
    for command in commands {
        assert!(!tests_of(&command).is_empty(), "docs/trust.md: no test is run by `{command}`");
    }
}
