//! The documents: links between them lead somewhere.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Folders whose documents are others'.
const NOT_OURS: [&str; 4] = ["target", "node_modules", ".git", "nudge-data"];

fn is_document(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("md"))
}

/// All documents below a folder.
pub(crate) fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if path.is_symlink() || NOT_OURS.contains(&name) {
            continue;
        }
        if path.is_dir() {
            found.extend(documents(&path));
        } else if is_document(&path) {
            found.push(path);
        }
    }
    found
}

/// A document without its blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Where the links of a document lead.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for part in text.split("](").skip(1) {
        let (target, _) = part.split_once(')').unwrap();
        if !target.contains(' ') {
            links.push(target);
        }
    }
    links
}

/// The anchors that a document's headings have, as code forges make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchors = headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    });
    anchors.collect()
}

/// Why a link of a document leads nowhere.
fn fault(document: &Path, link: &str) -> Option<&'static str> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        document.to_owned()
    } else {
        document.parent().unwrap().join(path)
    };
    if !target.exists() {
        return Some("there is no such file");
    }
    if anchor.is_empty() || !is_document(&target) {
        return None;
    }
    let text = std::fs::read_to_string(target).unwrap();
    let found = anchors(&prose(&text)).iter().any(|known| known == anchor);
    (!found).then_some("there is no such heading")
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut checked = 0;
    let mut faults = Vec::new();
    for document in documents(Path::new(ROOT)) {
        let text = prose(&std::fs::read_to_string(&document).unwrap());
        for link in links(&text) {
            // What a server has at an address of its own is looked at in `book`.
            if link.contains("://") || link.starts_with("mailto:") || link.starts_with('/') {
                continue;
            }
            checked += 1;
            if let Some(fault) = fault(&document, link) {
                faults.push(format!("{}: {link}: {fault}", document.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked >= 40, "{checked} links were found");
}

#[test]
fn every_document_is_in_the_book() {
    let book = Path::new(ROOT).join("host/docs");
    let summary = std::fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> = links(&summary).iter().map(|link| book.join(link)).collect();
    let mut there: BTreeSet<PathBuf> = documents(&book).into_iter().collect();
    there.remove(&book.join("SUMMARY.md"));
    assert_eq!(there, listed);
}
