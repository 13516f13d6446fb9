//! Embeds the files that `nudge plugin new` writes (the guest SDK, the contract and the templates of projects), and
//! those of the console, the web SDK's bundles, and the book.

#[path = "build/book.rs"]
mod book;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest as _, Sha256};

/// The lists of files, and the folders that they are of.
const LISTS: [(&str, &str); 3] = [
    ("SDK", "../guest-sdk"),
    ("WIT", "../wit"),
    ("TEMPLATES", "../plugins/templates"),
];
/// The console's files, and those of them that are pages: of the console, and of the API's description.
const CONSOLE: &str = "console/app";
const PAGES: [(&str, &str); 2] = [("PAGE", "index.html"), ("DOCS", "docs.html")];
/// Modules of others in it, whose comments are their licences.
const VENDOR: &str = "vendor/";
/// The web SDK's bundles.
const WEB_SDK: &str = "web-sdk/dist";
/// The book's documents, what is around its pages, and what it has of the console's files.
const DOCUMENTS: &str = "docs";
const BOOK: &str = "book";
const PICTURES: [&str; 2] = [".png", ".svg"];
const BOOK_TEMPLATE: &str = "page.html";
const OF_CONSOLE: [&str; 2] = ["icon.svg", "theme.js"];
/// What stands in a page for the version of all files.
const VERSION_MARK: &str = "{{HASH}}";
/// Hexadecimal digits of a version.
const VERSION_DIGITS: usize = 16;

fn main() -> io::Result<()> {
    let package = env_path("CARGO_MANIFEST_DIR")?;
    let out = env_path("OUT_DIR")?;
    let mut source = String::new();
    for (name, folder) in LISTS {
        let (folder, files) = files_of(&package, folder)?;
        let _ = writeln!(
            source,
            "/// Files of a folder: path and text.\npub(super) const {name}: &[(&str, &str)] = &["
        );
        for file in files {
            let path = text(file.strip_prefix(&folder).map_err(io::Error::other)?)?;
            let file = text(&file)?;
            let _ = writeln!(source, "    ({path:?}, include_str!({file:?})),");
        }
        source.push_str("];\n");
    }
    fs::write(out.join("authoring.rs"), source)?;
    fs::write(out.join("console.rs"), console(&package, &out)?)?;
    fs::write(out.join("web_sdk.rs"), web_sdk(&package, &out)?)?;
    fs::write(out.join("book.rs"), book(&package, &out)?)
}

/// The source of the book's files: pages, pictures, style, script, and what the search looks in.
fn book(package: &Path, out: &Path) -> io::Result<String> {
    let mut named = Vec::new();
    let (folder, documents) = files_of(package, DOCUMENTS)?;
    for file in documents {
        let path = text(file.strip_prefix(&folder).map_err(io::Error::other)?)?.to_owned();
        if PICTURES.iter().any(|end| path.ends_with(end)) {
            named.push((path, fs::read(&file)?));
        }
    }
    let (around, parts) = files_of(package, BOOK)?;
    let template = fs::read_to_string(around.join(BOOK_TEMPLATE))?;
    named.extend(book::make(&folder, &template)?);
    let console = OF_CONSOLE.map(|file| package.join(CONSOLE).join(file));
    for file in parts.iter().chain(&console) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name != BOOK_TEMPLATE {
            named.push((name.into_owned(), fs::read(file)?));
        }
    }
    let mut source = format!(
        "pub(super) const TAG: &str = \"\\\"{}\\\"\";\n",
        version_of(&named)
    );
    source.push_str("pub(super) static FILES: &[super::Asset] = &[\n");
    for (number, (path, bytes)) in named.iter().enumerate() {
        let asset = asset(path, bytes, &out.join(format!("book-{number}")), false)?;
        let _ = writeln!(source, "    {asset},");
    }
    source.push_str("];\n");
    Ok(source)
}

/// The version of files: the beginning of a digest of all of them.
fn version_of(files: &[(String, Vec<u8>)]) -> String {
    let mut digest = Sha256::new();
    for (path, bytes) in files {
        for part in [path.as_bytes(), bytes] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    }
    let mut version = String::new();
    for byte in digest.finalize() {
        let _ = write!(version, "{byte:02x}");
    }
    version.truncate(VERSION_DIGITS);
    version
}

/// The source of the console's files: the pages, which name the version of all of them, and the others; each as it is
/// and compressed.
fn console(package: &Path, out: &Path) -> io::Result<String> {
    let (folder, files) = files_of(package, CONSOLE)?;
    let mut named = Vec::new();
    for file in files {
        let path = text(file.strip_prefix(&folder).map_err(io::Error::other)?)?.to_owned();
        named.push((path, fs::read(&file)?));
    }
    let version = version_of(&named);
    let tag = format!("\"{version}\"");
    let mut source = format!(
        "pub(super) const VERSION: &str = {version:?};\npub(super) const TAG: &str = {tag:?};\n"
    );
    let mut list = "pub(super) static FILES: &[super::Asset] = &[\n".to_owned();
    for (number, (path, mut bytes)) in named.into_iter().enumerate() {
        let page = PAGES.iter().find(|(_, file)| path == *file);
        if page.is_some() {
            let page = String::from_utf8(bytes).map_err(io::Error::other)?;
            bytes = page.replace(VERSION_MARK, &version).into_bytes();
        } else if [".js", ".css"].iter().any(|end| path.ends_with(end)) && !path.starts_with(VENDOR)
        {
            let text = String::from_utf8(bytes).map_err(io::Error::other)?;
            bytes = without_comments(&text).into_bytes();
        }
        let asset = asset(&path, &bytes, &out.join(format!("console-{number}")), true)?;
        if let Some((name, _)) = page {
            let _ = writeln!(source, "pub(super) static {name}: super::Asset = {asset};");
        } else {
            let _ = writeln!(list, "    {asset},");
        }
    }
    list.push_str("];\n");
    source.push_str(&list);
    Ok(source)
}

/// The source of the web SDK's bundles: the name of each, its text, and the text as gzip has it, which every page loads and so is
/// made as small as that can be.
fn web_sdk(package: &Path, out: &Path) -> io::Result<String> {
    let (folder, files) = files_of(package, WEB_SDK)?;
    let mut source = "pub(super) const BUNDLES: &[(&str, &str, &[u8])] = &[\n".to_owned();
    for file in files {
        let name = text(file.strip_prefix(&folder).map_err(io::Error::other)?)?;
        let mut compressed = Vec::new();
        let (options, format) = (zopfli::Options::default(), zopfli::Format::Gzip);
        zopfli::compress(options, format, &*fs::read(&file)?, &mut compressed)?;
        let gzip = out.join(format!("{name}.gz"));
        fs::write(&gzip, compressed)?;
        let (file, gzip) = (text(&file)?, text(&gzip)?);
        let _ = writeln!(
            source,
            "    ({name:?}, include_str!({file:?}), include_bytes!({gzip:?})),"
        );
    }
    source.push_str("];\n");
    Ok(source)
}

/// A module without the lines that are comments, without types in other lines, and without what indents them, which nobody's
/// browser needs; lines are left empty, so that a fault is told of the line where it is. `console/served.mjs` has the same
/// rule, and a test that it touches no code.
fn without_comments(text: &str) -> String {
    let mut is_inside = false;
    let mut served = String::with_capacity(text.len());
    for line in text.lines() {
        let trimmed = line.trim();
        let (begins, end) = (trimmed.starts_with("/*"), trimmed.find("*/"));
        if is_inside {
            if let Some(end) = end {
                is_inside = false;
                served.push_str(trimmed.get(end + 2..).unwrap_or_default());
            }
        } else if begins && end.is_none() {
            is_inside = true;
        } else if !(trimmed.starts_with("//")
            || begins && end.is_some_and(|end| end + 2 == trimmed.len()))
        {
            push_without_types(trimmed, &mut served);
        }
        served.push('\n');
    }
    served
}

/// Appends a line without the comments in it that are types.
fn push_without_types(line: &str, served: &mut String) {
    let mut rest = line;
    while let Some((before, comment)) = rest.split_once("/** @")
        && let Some((_, after)) = comment.split_once("*/")
    {
        served.push_str(before);
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    served.push_str(rest);
}

/// Writes a file and its compressed form; answers the expression for both. With `both` false, what is sent to few is left out
/// where the other is shorter.
fn asset(path: &str, bytes: &[u8], place: &Path, both: bool) -> io::Result<String> {
    let mut compressed = Vec::new();
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: 11,
        lgwin: 22,
        size_hint: bytes.len(),
        ..Default::default()
    };
    brotli::BrotliCompress(&mut &*bytes, &mut compressed, &parameters)?;
    if compressed.len() >= bytes.len() {
        compressed.clear();
    }
    let (plain, brotli) = (place.with_extension("plain"), place.with_extension("br"));
    let as_it_is = if both || compressed.is_empty() {
        bytes
    } else {
        &[]
    };
    fs::write(&plain, as_it_is)?;
    fs::write(&brotli, compressed)?;
    let (plain, brotli) = (text(&plain)?, text(&brotli)?);
    Ok(format!(
        "super::Asset {{ path: {path:?}, plain: include_bytes!({plain:?}), brotli: include_bytes!({brotli:?}) }}"
    ))
}

/// The files of a folder in order, which the package is built anew for when they change.
fn files_of(package: &Path, folder: &str) -> io::Result<(PathBuf, Vec<PathBuf>)> {
    println!("cargo:rerun-if-changed={folder}");
    let folder = package.join(folder).canonicalize()?;
    let mut files = Vec::new();
    list(&folder, &mut files)?;
    files.sort();
    Ok((folder, files))
}

fn env_path(variable: &str) -> io::Result<PathBuf> {
    env::var_os(variable)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other(format!("{variable} is not set")))
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str()
        .ok_or_else(|| io::Error::other("a path is not Unicode"))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            // What Python and build tools leave behind is not part of it.
            if name != "target" && name != "__pycache__" {
                list(&path, files)?;
            }
        } else if !name.starts_with('.') {
            files.push(path);
        }
    }
    Ok(())
}
