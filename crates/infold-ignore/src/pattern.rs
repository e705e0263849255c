//! Matches a glob pattern against bytes by git's rules, whose `**`, `[…]` and slashes differ from those of a shell.

/// A pattern with `*`, `?`, `[…]` and `**`, compiled.
#[derive(Debug)]
pub struct GlobPattern(Vec<GlobStep>);

#[derive(Debug)]
enum GlobStep {
    /// This byte.
    Byte(u8),
    /// One byte other than a slash: `?`.
    Any,
    /// One byte of a class, never a slash.
    Class(Box<[bool; 256]>),
    /// Any number of bytes other than slashes: `*`.
    Star,
    /// Any number of any bytes: `**`.
    DeepStar,
    /// Makes the next two steps optional. It stands before the two steps of `**/`, because `a/**/b` also matches `a/b`.
    Optional,
}

/// The meaning of a run of asterisks, which depends on whether a pattern is for names or for paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stars {
    /// For paths: two or more asterisks that are a whole component, as in `a/**/b`, match slashes, too. All other asterisks
    /// match no slash.
    Path,
    /// For names: any run of asterisks matches any bytes. Slashes need no exception, because a name contains none.
    Any,
}

impl GlobPattern {
    /// Compiles a pattern. None if it is malformed, such as `[a` or a backslash at the end: for git, such a pattern matches
    /// nothing.
    pub fn compile(text: &[u8], stars: Stars) -> Option<GlobPattern> {
        let mut steps = Vec::new();
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'\\' => {
                    steps.push(GlobStep::Byte(*text.get(at + 1)?));
                    at += 2;
                }
                b'?' => {
                    steps.push(GlobStep::Any);
                    at += 1;
                }
                b'[' => {
                    let (class, after) = parse_class(text, at + 1)?;
                    steps.push(GlobStep::Class(class));
                    at = after;
                }
                b'*' => at = push_stars(text, at, stars, &mut steps),
                literal => {
                    steps.push(GlobStep::Byte(literal));
                    at += 1;
                }
            }
        }
        Some(GlobPattern(steps))
    }

    /// Says whether the pattern matches a whole text, in time proportional to the product of their lengths.
    pub fn is_match(&self, text: &[u8]) -> bool {
        // A simulation of the pattern as a nondeterministic automaton: for each step, whether a match of the text so
        // far can continue with it; the last entry is the end of the pattern. Backtracking would take exponential time
        // for some patterns.
        let mut current = vec![false; self.0.len() + 1];
        let mut next = current.clone();
        self.reach(0, &mut current);
        for &byte in text {
            next.fill(false);
            let mut can_continue = false;
            for (at, step) in self.0.iter().enumerate() {
                if !current[at] {
                    continue;
                }
                let to = match step {
                    GlobStep::Byte(literal) if byte == *literal => at + 1,
                    GlobStep::Any if byte != b'/' => at + 1,
                    GlobStep::Class(class) if class[usize::from(byte)] => at + 1,
                    GlobStep::Star if byte != b'/' => at,
                    GlobStep::DeepStar => at,
                    _ => continue,
                };
                can_continue = true;
                self.reach(to, &mut next);
            }
            if !can_continue {
                return false;
            }
            std::mem::swap(&mut current, &mut next);
        }
        current[self.0.len()]
    }

    /// Marks a step as reached, and with it the steps that can be reached from it without consuming a byte.
    fn reach(&self, mut at: usize, reached: &mut [bool]) {
        // A pattern may have a million optional parts in a row: a loop, because that recursion would exhaust the stack.
        while !reached[at] {
            reached[at] = true;
            match self.0.get(at) {
                Some(GlobStep::Star | GlobStep::DeepStar) => at += 1,
                Some(GlobStep::Optional) => {
                    // The optional part is two steps, the second of which consumes a byte: the recursion ends there.
                    self.reach(at + 1, reached);
                    at += 3;
                }
                _ => return,
            }
        }
    }
}

/// Pushes the steps of a run of asterisks, and returns where the run ends.
fn push_stars(text: &[u8], start: usize, stars: Stars, steps: &mut Vec<GlobStep>) -> usize {
    let run = text[start..].iter().take_while(|byte| **byte == b'*');
    let end = start + run.count();
    if stars == Stars::Any {
        steps.push(GlobStep::DeepStar);
        return end;
    }
    let is_start = start == 0 || text[start - 1] == b'/';
    let rest = &text[end..];
    // An escaped slash ends the component, too, but is compiled by the caller.
    let is_end = rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"\\/");
    if end - start < 2 || !is_start || !is_end {
        steps.push(GlobStep::Star);
        return end;
    }
    if rest.starts_with(b"/") {
        steps.push(GlobStep::Optional);
        steps.push(GlobStep::DeepStar);
        steps.push(GlobStep::Byte(b'/'));
        return end + 1;
    }
    steps.push(GlobStep::DeepStar);
    end
}

/// Parses a class that starts right after its `[`, and returns it with the position right after its `]`. None if it is
/// malformed.
fn parse_class(text: &[u8], start: usize) -> Option<(Box<[bool; 256]>, usize)> {
    let mut class = Box::new([false; 256]);
    let mut at = start;
    let is_negated = matches!(text.get(at), Some(b'!' | b'^'));
    if is_negated {
        at += 1;
    }
    // The byte before a `-`, if it can begin a range.
    let mut previous = None;
    let mut is_first = true;
    loop {
        let byte = *text.get(at)?;
        if byte == b']' && !is_first {
            break;
        }
        // A `]` right after the opening bracket is a member of the class.
        is_first = false;
        let next = text.get(at + 1).copied();
        if byte == b'-'
            && let Some(from) = previous
            && let Some(next) = next
            && next != b']'
        {
            at += 1;
            let mut to = next;
            if to == b'\\' {
                at += 1;
                to = *text.get(at)?;
            }
            for member in from..=to {
                class[usize::from(member)] = true;
            }
            previous = None;
            at += 1;
        } else if byte == b'[' && next == Some(b':') {
            let name_start = at + 2;
            let length = text[name_start..].iter().position(|byte| *byte == b']')?;
            let name_end = name_start + length;
            if length == 0 || text[name_end - 1] != b':' {
                // This is not a named class such as `[:alpha:]`, so the bracket stands for itself.
                class[usize::from(b'[')] = true;
                previous = Some(b'[');
                at += 1;
                continue;
            }
            let is_member = named_class(&text[name_start..name_end - 1])?;
            for member in 0..=127u8 {
                class[usize::from(member)] |= is_member(member);
            }
            previous = None;
            at = name_end + 1;
        } else {
            let mut member = byte;
            if byte == b'\\' {
                at += 1;
                member = *text.get(at)?;
            }
            class[usize::from(member)] = true;
            previous = Some(member);
            at += 1;
        }
    }
    if is_negated {
        for member in class.iter_mut() {
            *member = !*member;
        }
    }
    // A class never matches a slash, not even a negated one.
    class[usize::from(b'/')] = false;
    Some((class, at + 1))
}

/// Returns a function that tests whether a byte belongs to a named class such as `[:alpha:]`; none for an unknown name.
/// As in git, only ASCII bytes belong to such a class.
fn named_class(name: &[u8]) -> Option<fn(u8) -> bool> {
    Some(match name {
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"blank" => |byte| byte == b' ' || byte == b'\t',
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"digit" => |byte| byte.is_ascii_digit(),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"print" => |byte| byte.is_ascii_graphic() || byte == b' ',
        b"punct" => |byte| byte.is_ascii_punctuation(),
        // Git's own table contains neither vertical tab nor form feed.
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        _ => return None,
    })
}
