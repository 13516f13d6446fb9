//! Makes the book of the documents that `docs/SUMMARY.md` lists: a page of HTML for each, and what the search looks in.
//!
//! It is a book for mdBook too, whose own pages have scripts and styles that the policy of the server's pages forbids.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{
    Alignment, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
    TextMergeStream, html,
};

/// A document of the book.
struct Document {
    /// Its path in the folder of documents.
    source: String,
    /// Its path in the book.
    path: String,
    /// Its title in the list.
    title: String,
    /// The part of the book that begins with it.
    part: Option<String>,
}

/// A part of a page that a heading begins: what the search looks in.
struct Section {
    anchor: String,
    heading: String,
    is_top: bool,
    text: String,
}

/// A page without what is around it.
struct Page {
    content: String,
    sections: Vec<Section>,
}

/// The files of the book: path and bytes. `template` is what is around a page.
pub(crate) fn make(docs: &Path, template: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let documents = listed(&read(&docs.join("SUMMARY.md"))?);
    let paths: BTreeMap<&str, &str> = documents
        .iter()
        .map(|document| (&*document.source, &*document.path))
        .collect();
    let mut pages = Vec::new();
    for document in &documents {
        pages.push(page(
            document,
            &read(&docs.join(&document.source))?,
            &paths,
        )?);
    }
    let mut files = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        let html = around(template, &documents, &pages, number);
        files.push((document.path.clone(), html.into_bytes()));
    }
    files.push(("search.json".to_owned(), index(&documents, &pages).into()));
    Ok(files)
}

fn read(path: &Path) -> io::Result<String> {
    let said = |error: io::Error| fault(format!("{}: {error}", path.display()));
    std::fs::read_to_string(path).map_err(said)
}

fn fault(text: String) -> io::Error {
    io::Error::other(text)
}

/// The documents of a summary as mdBook has it: `# Part`, `[Title](path.md)`, `- [Title](path.md)`.
fn listed(summary: &str) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut part = None;
    for line in summary.lines().skip(1) {
        if let Some(title) = line.strip_prefix("# ") {
            part = Some(title.to_owned());
        } else if let Some((title, source)) = line
            .trim_start_matches([' ', '-'])
            .strip_prefix('[')
            .and_then(|link| link.strip_suffix(')'))
            .and_then(|link| link.split_once("]("))
        {
            documents.push(Document {
                source: source.to_owned(),
                path: address(source),
                title: title.to_owned(),
                part: part.take(),
            });
        }
    }
    documents
}

/// A document's path in the book, as mdBook has it.
fn address(source: &str) -> String {
    let path = source.strip_suffix(".md").unwrap_or(source);
    match path.strip_suffix("README") {
        Some(folder) => format!("{folder}index.html"),
        None => format!("{path}.html"),
    }
}

/// A document as a page.
fn page(document: &Document, text: &str, paths: &BTreeMap<&str, &str>) -> io::Result<Page> {
    let mut maker = Maker::default();
    let parsed = TextMergeStream::new(Parser::new_ext(text, Options::ENABLE_TABLES));
    for event in parsed {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                maker.link(target(document, &dest_url, paths)?);
            }
            Event::Start(tag) => maker.start(tag),
            Event::End(tag) => maker.end(tag),
            event => maker.words(event),
        }
    }
    let mut content = String::new();
    html::push_html(&mut content, maker.events.into_iter());
    // Heads without words are for the eye only.
    Ok(Page {
        content: content.replace("<th></th>", "<td></td>"),
        sections: maker.sections,
    })
}

/// What becomes a page.
#[derive(Default)]
struct Maker<'a> {
    events: Vec<Event<'a>>,
    sections: Vec<Section>,
    /// What the heading that has begun says so far, and which event begins it.
    heading: Option<(usize, HeadingLevel, String)>,
    /// Where the link that has begun leads, if that is out of the book.
    outside: Option<String>,
    is_code: bool,
}

impl<'a> Maker<'a> {
    fn start(&mut self, tag: Tag<'a>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.heading = Some((self.events.len(), level, String::new()));
                self.push(Event::Start(tag));
            }
            Tag::Table(alignments) => {
                // Alignments would be inline styles.
                let none = vec![Alignment::None; alignments.len()];
                self.push(markup("<div class=\"table\" tabindex=\"0\">"));
                self.push(Event::Start(Tag::Table(none)));
            }
            Tag::CodeBlock(_) => {
                self.is_code = true;
                self.push(markup("<pre tabindex=\"0\"><code>"));
            }
            tag => self.push(Event::Start(tag)),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.begin_section();
                self.push(Event::End(tag));
            }
            TagEnd::Table => {
                self.push(Event::End(tag));
                self.push(markup("</div>"));
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.push(markup("</code></pre>\n"));
            }
            TagEnd::Link => match self.outside.take() {
                Some(path) => self.push(markup(format!(" (<code>{}</code>)", escaped(&path)))),
                None => self.push(Event::End(tag)),
            },
            tag => self.push(Event::End(tag)),
        }
    }

    fn link(&mut self, target: Target) {
        match target {
            Target::Page(href) => self.push(Event::Start(Tag::Link {
                link_type: LinkType::Inline,
                dest_url: href.into(),
                title: CowStr::Borrowed(""),
                id: CowStr::Borrowed(""),
            })),
            Target::File(path) => self.outside = Some(path),
        }
    }

    fn words(&mut self, event: Event<'a>) {
        let words = match &event {
            Event::Text(words) | Event::Code(words) => &**words,
            _ => "",
        };
        if let Some((_, _, heading)) = &mut self.heading {
            heading.push_str(words);
        } else if let Some(section) = self.sections.last_mut() {
            section.text.push_str(words);
            section.text.push(' ');
        }
        let event = if self.is_code {
            markup(escaped(words))
        } else {
            event
        };
        self.push(event);
    }

    /// The heading is read: what follows is its section.
    fn begin_section(&mut self) {
        let Some((place, level, heading)) = self.heading.take() else {
            return;
        };
        let anchor = free_anchor(&heading, &self.sections);
        if let Some(start) = self.events.get_mut(place) {
            *start = markup(format!("<{level} id=\"{}\">", escaped(&anchor)));
        }
        self.sections.push(Section {
            anchor,
            heading,
            is_top: level == HeadingLevel::H2,
            text: String::new(),
        });
    }

    fn push(&mut self, event: Event<'a>) {
        self.events.push(event);
    }
}

fn markup<'a>(html: impl Into<CowStr<'a>>) -> Event<'a> {
    Event::Html(html.into())
}

/// A heading's anchor, as code forges make it: a second one of a name has a number.
fn free_anchor(heading: &str, sections: &[Section]) -> String {
    let kept = heading.to_lowercase();
    let kept = kept
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    let anchor: String = kept
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect();
    let is_taken = |anchor: &str| sections.iter().any(|section| section.anchor == anchor);
    if !is_taken(&anchor) {
        return anchor;
    }
    let mut number = 1;
    while is_taken(&format!("{anchor}-{number}")) {
        number += 1;
    }
    format!("{anchor}-{number}")
}

/// Where a link leads.
enum Target {
    /// To this address.
    Page(String),
    /// To a file of the repository, which the book does not have.
    File(String),
}

fn target(document: &Document, link: &str, paths: &BTreeMap<&str, &str>) -> io::Result<Target> {
    if link.contains("://") || link.starts_with(['#', '/']) || link.starts_with("mailto:") {
        return Ok(Target::Page(link.to_owned()));
    }
    let (file, anchor) = link
        .split_once('#')
        .map_or((link, ""), |(file, anchor)| (file, anchor));
    let mut whole = PathBuf::from("host/docs");
    let folder = Path::new(&document.source)
        .parent()
        .unwrap_or(Path::new(""));
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::Normal(part) => whole.push(part),
            _ => {}
        }
    }
    let whole = whole.to_string_lossy().into_owned();
    let Some(inside) = whole.strip_prefix("host/docs/") else {
        return Ok(Target::File(whole));
    };
    let Some(path) = paths.get(inside) else {
        let source = &document.source;
        return Err(fault(format!(
            "host/docs/{source}: `{link}` is no document of SUMMARY.md"
        )));
    };
    let mut href = format!("{}{path}", root(document));
    if !anchor.is_empty() {
        let _ = write!(href, "#{anchor}");
    }
    Ok(Target::Page(href))
}

/// The way from a page to the book's root.
fn root(document: &Document) -> String {
    "../".repeat(document.path.matches('/').count())
}

/// A page with what is around it.
fn around(template: &str, documents: &[Document], pages: &[Page], number: usize) -> String {
    let (Some(document), Some(page)) = (documents.get(number), pages.get(number)) else {
        return String::new();
    };
    let root = root(document);
    let mut list = String::new();
    for other in documents {
        if let Some(part) = &other.part {
            let _ = write!(list, "</ul>\n<h2>{}</h2>\n<ul>\n", escaped(part));
        }
        let is_here = other.path == document.path;
        let here = if is_here {
            " aria-current=\"page\""
        } else {
            ""
        };
        let _ = write!(
            list,
            "<li><a href=\"{root}{}\"{here}>{}</a>",
            other.path,
            escaped(&other.title)
        );
        let parts: Vec<&Section> = page
            .sections
            .iter()
            .filter(|section| section.is_top)
            .collect();
        if is_here && parts.len() > 2 {
            list.push_str("<ul>");
            for Section {
                anchor, heading, ..
            } in parts
            {
                let _ = write!(
                    list,
                    "<li><a href=\"#{}\">{}</a></li>",
                    escaped(anchor),
                    escaped(heading)
                );
            }
            list.push_str("</ul>");
        }
        list.push_str("</li>\n");
    }
    let turn = |other: Option<&Document>, words: &str, relation: &str| {
        other.map_or_else(String::new, |other| {
            let (path, title) = (&other.path, escaped(&other.title));
            format!("<a rel=\"{relation}\" href=\"{root}{path}\">{words}: {title}</a>")
        })
    };
    let earlier = number
        .checked_sub(1)
        .and_then(|number| documents.get(number));
    template
        .replace("{{title}}", &escaped(&document.title))
        .replace("{{list}}", &format!("<ul>\n{list}</ul>"))
        .replace("{{previous}}", &turn(earlier, "Before", "prev"))
        .replace("{{next}}", &turn(documents.get(number + 1), "Next", "next"))
        .replace("{{root}}", &root)
        .replace("{{content}}", &page.content)
}

/// What the search looks in: for each section its address, the title of its page, its heading and its words.
fn index(documents: &[Document], pages: &[Page]) -> String {
    let mut entries = Vec::new();
    for (document, page) in documents.iter().zip(pages) {
        for section in &page.sections {
            let words: Vec<&str> = section.text.split_whitespace().collect();
            let address = format!("{}#{}", document.path, section.anchor);
            let parts = [
                &address,
                &document.title,
                &section.heading,
                &words.join(" "),
            ];
            entries.push(format!("[{}]", parts.map(|part| quoted(part)).join(",")));
        }
    }
    format!("[\n{}\n]\n", entries.join(",\n"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.push(' '),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
