//! The text format of Berkeley DB's db_dump and db_load, version 3.
//!
//! A dump is one section per database:
//!
//! ```text
//! VERSION=3
//! format=bytevalue        or print
//! database=people         which one; db_dump leaves it out for a file with a single database
//! type=btree              or hash, or hash_prefix
//! HEADER=END
//!  616c706861             key, after one space; keys and values alternate
//!  6f6e65                 value
//! DATA=END
//! ```
//!
//! Tables are a section of `type=sql` without a name. Its items are statements, and rows after a
//! COPY (`docs/dump.md`). Berkeley DB has no such section.
//!
//! `bytevalue` writes each byte as two hexadecimal digits. `print` writes printable ASCII
//! unchanged, a backslash as two, and any other byte as a backslash and two hexadecimal digits.

use std::io::{self, BufRead, Write};

use anyhow::{Context, anyhow, bail};
use quickbeam::AccessMethod;

/// Header keywords that tune Berkeley DB's storage and do not change a database's content or order.
const TUNING: [&str; 12] = [
    "VERSION",
    "db_pagesize",
    "db_lorder",
    "bt_minkey",
    "h_ffactor",
    "h_nelem",
    "extentsize",
    "re_len",
    "re_pad",
    "mp_size",
    "chksum",
    "keys",
];

/// The encoding of keys and values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ItemFormat {
    Print,
    ByteValue,
}

impl ItemFormat {
    fn name(self) -> &'static str {
        match self {
            ItemFormat::Print => "print",
            ItemFormat::ByteValue => "bytevalue",
        }
    }
}

/// The properties of a section that `load` uses.
#[derive(Debug, PartialEq)]
pub struct Header {
    pub format: ItemFormat,
    pub database: Option<String>,
    pub content: Content,
    /// Header lines whose feature the loaded database lacks.
    pub dropped: Vec<String>,
}

/// The content of a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// Keys and values of a database with this access method.
    Records(AccessMethod),
    /// Statements that create tables, and rows.
    Tables,
}

/// Writes the header of a section. The section of the tables has no database name.
pub fn write_header(
    output: &mut impl Write,
    format: ItemFormat,
    database: Option<&str>,
    content: Content,
) -> io::Result<()> {
    writeln!(output, "VERSION=3\nformat={}", format.name())?;
    if let Some(database) = database {
        output.write_all(b"database=")?;
        write_bytes(output, ItemFormat::Print, database.as_bytes())?;
        output.write_all(b"\n")?;
    }
    match content {
        Content::Records(method) => writeln!(output, "type={method}\nHEADER=END"),
        Content::Tables => writeln!(output, "type=sql\nHEADER=END"),
    }
}

/// Writes a key or a value as a line.
pub fn write_item(output: &mut impl Write, format: ItemFormat, bytes: &[u8]) -> io::Result<()> {
    output.write_all(b" ")?;
    write_bytes(output, format, bytes)?;
    output.write_all(b"\n")
}

pub fn write_end(output: &mut impl Write) -> io::Result<()> {
    output.write_all(b"DATA=END\n")
}

fn write_bytes(output: &mut impl Write, format: ItemFormat, bytes: &[u8]) -> io::Result<()> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        match (format, byte) {
            (ItemFormat::ByteValue, _) => output.write_all(&digits)?,
            (ItemFormat::Print, b'\\') => output.write_all(b"\\\\")?,
            (ItemFormat::Print, b' '..=b'~') => output.write_all(&[byte])?,
            (ItemFormat::Print, _) => output.write_all(&[b'\\', digits[0], digits[1]])?,
        }
    }
    Ok(())
}

/// Reads a dump line by line. Every error names its line.
pub struct Reader<R> {
    input: R,
    /// Number of the line in `text`, starting at 1.
    line: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Reader<R> {
    pub fn new(input: R) -> Reader<R> {
        Reader { input, line: 0, text: Vec::new() }
    }

    /// Returns the number of the last line read.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the header of the next section. Returns `None` at the end of the input.
    pub fn header(&mut self) -> anyhow::Result<Option<Header>> {
        if !self.next_line()? {
            return Ok(None);
        }
        if self.text != b"VERSION=3" && self.text != b"VERSION=2" {
            bail!("line {}: a dump begins with VERSION=3; write it with db_dump", self.line);
        }
        let content = Content::Records(AccessMethod::BTree);
        let mut header =
            Header { format: ItemFormat::ByteValue, database: None, content, dropped: Vec::new() };
        loop {
            if !self.next_line()? {
                bail!("line {}: the input ends before HEADER=END", self.line);
            }
            if self.text == b"HEADER=END" {
                return Ok(Some(header));
            }
            let line = self.line;
            self.header_line(&mut header).with_context(|| format!("line {line}"))?;
        }
    }

    /// Reads a key and its value. Returns false at the end of the section.
    pub fn pair(
        &mut self,
        format: ItemFormat,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> anyhow::Result<bool> {
        if !self.item(format, key)? {
            return Ok(false);
        }
        if !self.item(format, value)? {
            bail!("line {}: the section ends after a key without a value", self.line);
        }
        Ok(true)
    }

    fn header_line(&self, header: &mut Header) -> anyhow::Result<()> {
        let text = std::str::from_utf8(&self.text).context("the header is not text")?;
        let Some((name, value)) = text.split_once('=') else {
            bail!("{text:?} is not a header line (name=value)");
        };
        match (name, value) {
            ("format", "bytevalue") => header.format = ItemFormat::ByteValue,
            ("format", "print") => header.format = ItemFormat::Print,
            ("format", _) => bail!("unknown format {value:?}; one of print, bytevalue"),
            ("database", _) => {
                let mut name = Vec::new();
                decode(ItemFormat::Print, value.as_bytes(), &mut name)?;
                let name = String::from_utf8(name).context("the database's name is not UTF-8")?;
                header.database = Some(name);
            }
            ("type", "btree") => header.content = Content::Records(AccessMethod::BTree),
            ("type", "hash") => header.content = Content::Records(AccessMethod::Hash),
            // Extensions of Quickbeam.
            ("type", "hash_prefix") => header.content = Content::Records(AccessMethod::HashPrefix),
            ("type", "sql") => header.content = Content::Tables,
            ("type", _) => {
                bail!("a database of type {value} cannot be loaded; btree and hash databases can")
            }
            ("duplicates", "1") => {
                bail!(
                    "a database with duplicates cannot be loaded: Quickbeam keeps one value a key"
                )
            }
            // Berkeley DB's storage parameters have no meaning here.
            (name, _) if TUNING.contains(&name) => {}
            // A feature that is switched off.
            (_, "0") => {}
            _ => header.dropped.push(text.to_owned()),
        }
        Ok(())
    }

    /// Reads the next item. Returns false at the end of the section.
    pub fn item(&mut self, format: ItemFormat, bytes: &mut Vec<u8>) -> anyhow::Result<bool> {
        if !self.next_line()? {
            bail!("line {}: the input ends before DATA=END: the dump is not complete", self.line);
        }
        let Some(text) = self.text.strip_prefix(b" ") else {
            if self.text == b"DATA=END" {
                return Ok(false);
            }
            bail!("line {}: neither a key or value, which follow a space, nor DATA=END", self.line);
        };
        bytes.clear();
        decode(format, text, bytes).with_context(|| format!("line {}", self.line))?;
        Ok(true)
    }

    fn next_line(&mut self) -> anyhow::Result<bool> {
        self.text.clear();
        let read = self.input.read_until(b'\n', &mut self.text);
        let length = read.with_context(|| format!("cannot read after line {}", self.line))?;
        self.line += u64::from(length > 0);
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
        }
        Ok(length > 0)
    }
}

fn decode(format: ItemFormat, text: &[u8], bytes: &mut Vec<u8>) -> anyhow::Result<()> {
    match format {
        ItemFormat::ByteValue => {
            let (pairs, rest) = text.as_chunks::<2>();
            if !rest.is_empty() {
                bail!("an odd number of hexadecimal digits");
            }
            for pair in pairs {
                bytes.push(byte_of(*pair)?);
            }
        }
        ItemFormat::Print => {
            let mut rest = text;
            while let [first, after @ ..] = rest {
                rest = match (first, after) {
                    (b'\\', [b'\\', after @ ..]) => {
                        bytes.push(b'\\');
                        after
                    }
                    (b'\\', [high, low, after @ ..]) => {
                        bytes.push(byte_of([*high, *low])?);
                        after
                    }
                    (b'\\', _) => bail!("a backslash without a backslash or two digits after it"),
                    (plain, after) => {
                        bytes.push(*plain);
                        after
                    }
                };
            }
        }
    }
    Ok(())
}

fn byte_of(digits: [u8; 2]) -> anyhow::Result<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok());
    match (digit(digits[0]), digit(digits[1])) {
        (Some(high), Some(low)) => Ok(high << 4 | low),
        _ => Err(anyhow!("{:?} are not two hexadecimal digits", String::from_utf8_lossy(&digits))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(format: ItemFormat, pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut text = Vec::new();
        let content = Content::Records(AccessMethod::BTree);
        write_header(&mut text, format, Some("a\\b\n"), content).unwrap();
        for (key, value) in pairs {
            write_item(&mut text, format, key).unwrap();
            write_item(&mut text, format, value).unwrap();
        }
        write_end(&mut text).unwrap();
        text
    }

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    /// Reads all sections.
    fn read(text: &[u8]) -> anyhow::Result<Vec<(Header, Pairs)>> {
        let mut reader = Reader::new(text);
        let mut sections = Vec::new();
        while let Some(header) = reader.header()? {
            let (mut key, mut value, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
            while reader.pair(header.format, &mut key, &mut value)? {
                pairs.push((key.clone(), value.clone()));
            }
            sections.push((header, pairs));
        }
        Ok(sections)
    }

    #[test]
    fn every_byte_survives_both_formats() {
        let every: Vec<u8> = (0..=255).collect();
        for format in [ItemFormat::Print, ItemFormat::ByteValue] {
            let text = section(format, &[(&every, b""), (b"", &every)]).repeat(2);
            let sections = read(&text).unwrap();
            assert_eq!(sections.len(), 2);
            for (header, pairs) in sections {
                assert_eq!(header.format, format);
                assert_eq!(header.database.as_deref(), Some("a\\b\n"));
                assert_eq!(pairs, [(every.clone(), vec![]), (vec![], every.clone())]);
            }
        }
    }

    #[test]
    fn the_section_of_tables_has_items_and_no_name() {
        let mut text = Vec::new();
        write_header(&mut text, ItemFormat::Print, None, Content::Tables).unwrap();
        write_item(&mut text, ItemFormat::Print, b"SELECT '\n'").unwrap();
        write_end(&mut text).unwrap();
        let mut reader = Reader::new(&text[..]);
        let header = reader.header().unwrap().unwrap();
        assert_eq!((header.database, header.content), (None, Content::Tables));
        let mut item = Vec::new();
        assert!(reader.item(header.format, &mut item).unwrap());
        assert_eq!(item, b"SELECT '\n'");
        assert!(!reader.item(header.format, &mut item).unwrap());
    }

    #[test]
    fn text_of_db_dump_is_read() {
        let text =
            b"VERSION=3\nformat=print\ntype=hash\nh_nelem=3\ndb_pagesize=4096\nHEADER=END\n \
                     alpha\n one\n b\\\\c\n two\\00x\n \\e4\n \nDATA=END\n";
        let sections = read(text).unwrap();
        assert_eq!(sections[0].0.content, Content::Records(AccessMethod::Hash));
        assert!(sections[0].0.database.is_none());
        let pairs: Vec<(&[u8], &[u8])> =
            vec![(b"alpha", b"one"), (b"b\\c", b"two\0x"), (b"\xe4", b"")];
        let read: Vec<(&[u8], &[u8])> =
            sections[0].1.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        assert_eq!(read, pairs);
    }

    #[test]
    fn errors_name_the_line_and_the_cause() {
        let head = "VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n";
        let cases = [
            ("hello\n".to_owned(), "line 1: a dump begins with VERSION=3"),
            ("VERSION=3\n".to_owned(), "line 1: the input ends before HEADER=END"),
            ("VERSION=3\nformat=xml\n".to_owned(), "line 2: unknown format"),
            ("VERSION=3\ntype=queue\n".to_owned(), "line 2: a database of type queue"),
            ("VERSION=3\nduplicates=1\n".to_owned(), "line 2: a database with duplicates"),
            ("VERSION=3\nnonsense\n".to_owned(), "line 2: \"nonsense\" is not a header line"),
            (format!("{head} 61\n"), "line 5: the input ends before DATA=END"),
            (format!("{head} 61\nDATA=END\n"), "line 6: the section ends after a key"),
            (format!("{head} 6\n 61\n"), "line 5: an odd number"),
            (format!("{head} 6g\n 61\n"), "line 5: \"6g\" are not two hexadecimal digits"),
            (format!("{head}61\n"), "line 5: neither a key or value"),
            (format!("{}{}", head.replace("bytevalue", "print"), " a\\4\n"), "line 5: a backslash"),
        ];
        for (text, start) in cases {
            let error = format!("{:#}", read(text.as_bytes()).unwrap_err());
            assert!(error.starts_with(start), "{text:?}: {error}");
        }
    }
}
