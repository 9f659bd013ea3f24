//! One Rust file as the checks see it: text, tokens with line numbers, functions, imports, and
//! which lines are test code.
//!
//! Most checks work on tokens, because these are there inside macro calls too, where a syntax tree
//! ends; comments and strings are no tokens and so cannot mislead them. The syntax tree gives what
//! tokens cannot: where a function ends, whose method it is, what an import expands to.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A parsed file of the tree.
pub struct Source {
    /// Path from the root of the workspace, with `/` between its parts.
    pub path: String,
    pub text: String,
    pub tokens: Vec<Token>,
    pub functions: Vec<Function>,
    pub imports: Vec<Import>,
    /// Names of the items at the top of the file, and of its types.
    pub items: Vec<String>,
    /// Structs, enums, unions, traits and type aliases, with their lines.
    pub types: Vec<(String, usize)>,
    /// Test functions, with their lines; those in macro calls too.
    pub tests: Vec<(String, usize)>,
    /// Modules declared as `#[cfg(test)] mod name;`, whose own files are test code.
    pub test_modules: Vec<String>,
    test_lines: Vec<RangeInclusive<usize>>,
}

/// A token: an identifier, a literal, a bracket or an operator. `::` is one token.
#[derive(Debug, PartialEq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A function with a body or a trait's declaration of one.
pub struct Function {
    pub name: String,
    /// The type and the trait it belongs to, if any.
    pub owners: Vec<String>,
    pub first_line: usize,
    pub last_line: usize,
}

/// One name brought in by a `use`, as its full path; the last part is `*` for a glob.
pub struct Import {
    pub path: Vec<String>,
    /// The name it has in this file.
    pub name: String,
    pub line: usize,
    /// Whether it is re-exported.
    pub is_public: bool,
}

impl Source {
    /// Whether the file defines a function, a type or another item with one of the names.
    pub fn defines_any(&self, names: &HashSet<&str>) -> bool {
        let functions = self.functions.iter().map(|function| function.name.as_str());
        let types = self.types.iter().map(|(name, _)| name.as_str());
        let items = self.items.iter().map(String::as_str);
        functions.chain(types).chain(items).any(|name| names.contains(name))
    }

    /// Parses `text`; the error says where it is not Rust.
    pub fn parse(path: &str, text: &str) -> Result<Source, String> {
        let place = |e: &syn::Error| format!("{path}:{}: {e}", e.span().start().line);
        let file = syn::parse_file(text).map_err(|e| place(&e))?;
        let stream: TokenStream =
            text.parse().map_err(|e: proc_macro2::LexError| format!("{path}: {e}"))?;
        let mut items = Items::default();
        items.visit_file(&file);
        let mut tests = TestCode::default();
        tests.scan(stream.clone());
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let tests_found = test_functions(&tokens);
        Ok(Source {
            path: path.to_owned(),
            text: text.to_owned(),
            tokens,
            functions: items.functions,
            imports: items.imports,
            items: file.items.iter().filter_map(item_name).collect(),
            types: items.types,
            tests: tests_found,
            test_modules: tests.modules,
            test_lines: tests.lines,
        })
    }

    /// Whether the line belongs to an item that is compiled for tests only. Says nothing about
    /// files which are test code as a whole: see `tree::product`.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|range| range.contains(&line))
    }

    /// The line, counted from 1; empty past the end.
    pub fn line(&self, number: usize) -> &str {
        number.checked_sub(1).and_then(|index| self.text.lines().nth(index)).unwrap_or("")
    }

    /// The paths written in the code (`a::b::c`, at least two parts), with their line. Imports
    /// show here only up to their first brace; `imports` has them whole.
    pub fn paths(&self) -> Vec<(Vec<String>, usize)> {
        let mut paths = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let mut path = Vec::new();
            let line = self.tokens[at].line;
            while is_identifier(&self.tokens[at].text) {
                path.push(self.tokens[at].text.clone());
                let Some([separator, _]) = self.tokens.get(at + 1..at + 3) else {
                    break;
                };
                if separator.text != "::" || !is_identifier(&self.tokens[at + 2].text) {
                    break;
                }
                at += 2;
            }
            if path.len() > 1 {
                paths.push((path, line));
            }
            at += 1;
        }
        paths
    }
}

/// The name of an item that has one.
fn item_name(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The functions under `#[test]`.
fn test_functions(tokens: &[Token]) -> Vec<(String, usize)> {
    let texts: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let mut found = Vec::new();
    for at in 0..texts.len() {
        if texts[at..].starts_with(&["#", "[", "test", "]"])
            && let Some(function) = texts[at..].iter().position(|text| *text == "fn")
            && let Some(name) = tokens.get(at + function + 1)
        {
            found.push((name.text.clone(), name.line));
        }
    }
    found
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Lays a token tree out as a list, with brackets as tokens of their own.
fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut colon_is_joint = false;
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                tokens.push(Token { text: open.to_owned(), line });
                let last_line = group.span_close().end().line;
                flatten(group.stream(), tokens);
                tokens.push(Token { text: close.to_owned(), line: last_line });
                colon_is_joint = false;
            }
            TokenTree::Punct(punct) => {
                match tokens.last_mut() {
                    Some(last) if colon_is_joint && punct.as_char() == ':' => last.text.push(':'),
                    _ => tokens.push(Token { text: punct.as_char().to_string(), line }),
                }
                colon_is_joint =
                    !colon_is_joint && punct.as_char() == ':' && punct.spacing() == Spacing::Joint;
            }
            other => {
                tokens.push(Token { text: other.to_string(), line });
                colon_is_joint = false;
            }
        }
    }
}

fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

/// Collects functions and imports from the syntax tree.
#[derive(Default)]
struct Items {
    functions: Vec<Function>,
    imports: Vec<Import>,
    types: Vec<(String, usize)>,
    owners: Vec<String>,
}

impl Items {
    fn function(&mut self, signature: &syn::Signature, end: proc_macro2::Span) {
        self.functions.push(Function {
            name: signature.ident.to_string(),
            owners: self.owners.clone(),
            first_line: signature.span().start().line,
            last_line: end.end().line,
        });
    }

    fn type_named(&mut self, name: &syn::Ident) {
        self.types.push((name.to_string(), name.span().start().line));
    }

    fn import(&mut self, tree: &syn::UseTree, prefix: &[String], is_public: bool) {
        let mut path = prefix.to_vec();
        let (last, name) = match tree {
            syn::UseTree::Path(step) => {
                path.push(step.ident.to_string());
                return self.import(&step.tree, &path, is_public);
            }
            syn::UseTree::Group(group) => {
                let each = group.items.iter();
                return each.for_each(|item| self.import(item, &path, is_public));
            }
            syn::UseTree::Name(leaf) => (leaf.ident.to_string(), leaf.ident.to_string()),
            syn::UseTree::Rename(leaf) => (leaf.ident.to_string(), leaf.rename.to_string()),
            syn::UseTree::Glob(_) => ("*".to_owned(), "*".to_owned()),
        };
        // `use a::b::{self}` brings in `a::b` under the name `b`.
        let (path, name) = if last == "self" && !path.is_empty() {
            let module = path.last().cloned().unwrap_or_default();
            (path, if name == "self" { module } else { name })
        } else {
            path.push(last);
            (path, name)
        };
        self.imports.push(Import { path, name, line: tree.span().start().line, is_public });
    }
}

impl<'ast> Visit<'ast> for Items {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        self.import(&item.tree, &[], is_public);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.type_named(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.type_named(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.type_named(&item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.type_named(&item.ident);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, item.block.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig, item.span());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let last_name = |path: &syn::Path| path.segments.last().map(|s| s.ident.to_string());
        let self_type = match &*item.self_ty {
            syn::Type::Path(path) => last_name(&path.path),
            _ => None,
        };
        let of_trait = item.trait_.as_ref().and_then(|(path, _)| last_name(path));
        let outer =
            std::mem::replace(&mut self.owners, self_type.into_iter().chain(of_trait).collect());
        visit::visit_item_impl(self, item);
        self.owners = outer;
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.type_named(&item.ident);
        let outer = std::mem::replace(&mut self.owners, vec![item.ident.to_string()]);
        visit::visit_item_trait(self, item);
        self.owners = outer;
    }
}

/// Finds what is compiled for tests only: an item under `#[test]` or a `#[cfg(…)]` which holds
/// in test builds alone.
#[derive(Default)]
struct TestCode {
    lines: Vec<RangeInclusive<usize>>,
    modules: Vec<String>,
}

impl TestCode {
    fn scan(&mut self, stream: TokenStream) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if matches!(trees.get(at + 1), Some(TokenTree::Group(g)) if is_test_attribute(g))
                    {
                        self.item(tree.span().start().line, &trees[at + 2..]);
                    }
                }
                TokenTree::Group(group) => self.scan(group.stream()),
                _ => {}
            }
        }
    }

    /// Marks an item: from its attribute to its closing brace or semicolon.
    fn item(&mut self, first_line: usize, rest: &[TokenTree]) {
        let is_end = |tree: &TokenTree| match tree {
            TokenTree::Punct(punct) => punct.as_char() == ';',
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            _ => false,
        };
        let end = rest.iter().position(is_end).unwrap_or(rest.len().saturating_sub(1));
        let Some(last) = rest.get(end) else { return };
        self.lines.push(first_line..=last.span().end().line);
        let declared = rest[..end].windows(2).find(|pair| pair[0].to_string() == "mod");
        if let (Some(pair), TokenTree::Punct(_)) = (declared, last) {
            self.modules.push(pair[1].to_string());
        }
    }
}

fn is_test_attribute(group: &proc_macro2::Group) -> bool {
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    match &trees[..] {
        [TokenTree::Ident(name)] => name == "test",
        [TokenTree::Ident(name), TokenTree::Group(condition)] => {
            name == "cfg" && holds_in_tests_only(condition.stream())
        }
        _ => false,
    }
}

fn holds_in_tests_only(condition: TokenStream) -> bool {
    let trees: Vec<TokenTree> = condition.into_iter().collect();
    let is_comma = |tree: &TokenTree| matches!(tree, TokenTree::Punct(p) if p.as_char() == ',');
    match &trees[..] {
        [TokenTree::Ident(name)] => name == "test",
        [TokenTree::Ident(name), TokenTree::Group(group)] => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let mut parts = inner
                .split(is_comma)
                .filter(|part| !part.is_empty())
                .map(|part| holds_in_tests_only(part.iter().cloned().collect()));
            (name == "all" && parts.any(|part| part)) || (name == "any" && parts.all(|part| part))
        }
        _ => false,
    }
}
