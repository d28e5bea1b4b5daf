//! [`TrapWatch`]: finds out sites that say the same under endless addresses. Pages of one URL shape
//! that look alike, each found on another of them and leading on to addresses that nobody knew, end
//! that shape's budget. Pure but for its lock.
//!
//! A list of stubs is no trap: its pages were found on an ordinary page, or lead to nothing but each
//! other, and all of those are known from the list. A trap goes on because its pages invent the next.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use telusur_ledger::TrapMark;
use telusur_model::PageUrl;
use xxhash_rust::xxh3::xxh3_64;

use crate::page_look::{PageLook, title_key};

/// Look-alikes in a row that end a shape: the addresses that differ in numbers, those of one
/// directory, those below the first directory, and the whole host. The wider, the more.
const RUNS_MAX: [u32; 4] = [60, 80, 100, 200];
/// The share of such a run after which further look-alikes are stored and not indexed: from the tenth
/// on for the narrowest shape. By then the index holds what they say; ten are enough for a gallery or
/// a calendar to be found, and few enough for a trap not to fill a page of results.
const INDEXED_SHARE: u32 = 6;
/// Looks of one shape that are told apart: a trap may take turns.
const LOOKS_MAX: usize = 4;
/// Pages of one look after which pages of another look that are found on them count: a trap that takes
/// turns leads from one look to the next. A list, whose pages all differ, is no such look.
const TURNS_MIN: usize = 3;
/// The shapes, from the narrowest, whose pages all count as look-alikes of an earlier run.
const CARRIED_WIDTHS: usize = 2;
/// Look-alikes after which the length of a run is written down: at most so many are asked for again
/// after a kill.
const MARK_EVERY: u32 = 10;
/// Shapes that are watched in one crawl: about 10 MB, and 8 bytes for each look-alike that is
/// remembered.
const SHAPES_MAX: usize = 10_000;
/// Look-alikes that are remembered of one look, to know what was found on them: more than the longest
/// run.
const MEMBERS_MAX: usize = 256;
/// Links of a look-alike that are looked up, to learn whether it leads on: more than a calendar has
/// days, and a fraction of a millisecond.
pub(crate) const LINKS_MAX: usize = 200;
/// Steps down from look-alike to look-alike after which one counts that leads on only to pages below
/// it: a list of profiles, each with a page of posts, has two.
const DESCENTS_MIN: u8 = 3;
/// Titles in a row that are the same, after which texts are compared, too.
const TITLES_BEFORE_TEXT: u32 = 8;

/// A page that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) url: &'a PageUrl,
    /// Where it was found.
    pub(crate) referrer: Option<&'a str>,
    pub(crate) title: &'a str,
    /// Its text; empty if nobody took it.
    pub(crate) text: &'a str,
    /// It looks like what the site sends for pages that do not exist.
    pub(crate) is_soft_404: bool,
}

/// What came of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Why it is not stored: it is one more look-alike of a shape that has ended.
    pub(crate) rule: Option<String>,
    /// It is one of so many look-alikes that it need not be found.
    pub(crate) is_repeated: bool,
    /// What is to be written down, for the next start.
    pub(crate) marks: Vec<TrapMark>,
}

/// What a crawl has seen of its sites' shapes. How they look is in memory alone; how long their runs
/// are, and which have ended, is written down.
#[derive(Debug, Default)]
pub(crate) struct TrapWatch {
    shapes: Mutex<Shapes>,
    has_ended: AtomicBool,
    wants_text: AtomicBool,
}

#[derive(Debug, Default)]
struct Shapes {
    watched: HashMap<u64, Shape>,
    /// Shapes whose budget has ended, with the rule in words.
    ended: HashMap<u64, String>,
}

#[derive(Debug, Default)]
struct Shape {
    looks: VecDeque<Look>,
    /// Look-alikes in a row, as far as they were found on look-alikes.
    run: u32,
    /// What was last written down of it.
    marked: u32,
    /// An earlier run of the crawl has seen look-alikes here that are in no memory any more.
    is_carried: bool,
    /// Looks that may be new after a start without ending the run: they were known before it.
    looks_forgotten: usize,
    /// Pages in a row whose title was known.
    titles: u32,
    /// Pages that look like what the site sends for pages that do not exist.
    soft_404: Members,
}

#[derive(Debug)]
struct Look {
    title: u64,
    /// Taken at the first page with this title whose text was taken.
    page: Option<Arc<PageLook>>,
    members: Members,
}

/// Where a page was found.
#[derive(Clone, Copy, Debug)]
enum Referrer {
    Nobody,
    Page {
        /// The hash of its URL.
        url: u64,
        /// Its path is shorter.
        is_above: bool,
    },
    /// On one that an earlier run of the crawl has seen.
    LookAlike,
}

/// Where a page leads, seen from one of its shapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LeadsOn {
    /// To nothing new.
    #[default]
    Nowhere,
    /// To a new page of the shape, at another depth of the path: down or up.
    Deeper,
    /// To a new page of the shape that may be another one like it.
    Alike,
}

/// The last pages of one look.
#[derive(Debug, Default)]
struct Members(VecDeque<Member>);

#[derive(Debug)]
struct Member {
    /// The hash of its URL.
    url: u64,
    /// Steps from look-alike to look-alike that led here, each down from the one before.
    descents: u8,
}

impl Members {
    fn add(&mut self, url: u64, descents: u8) {
        if self.0.len() >= MEMBERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Member { url, descents });
    }
}

/// A page, as a shape looks at it.
#[derive(Clone, Copy, Debug)]
struct PageSeen<'a> {
    title: u64,
    page: Option<&'a Arc<PageLook>>,
    is_soft_404: bool,
    /// The hash of its URL.
    own: u64,
}

/// What adding a page to a shape came to.
#[derive(Clone, Copy, Debug, Default)]
struct Added {
    is_like: bool,
    /// It is like one before it, and was found on one.
    is_found_on_one: bool,
}

impl TrapWatch {
    /// Whether the texts of pages are needed to tell traps from pages with equal titles.
    pub(crate) fn wants_text(&self) -> bool {
        self.wants_text.load(Ordering::Relaxed)
    }

    /// The rule that ends the shape of a URL, if there is one.
    pub(crate) fn rule_for(&self, url: &PageUrl) -> Option<String> {
        if !self.has_ended.load(Ordering::Relaxed) {
            return None;
        }
        let shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys =
            shapes_of(url).into_iter().enumerate().map(|(width, shape)| key_of(width, &shape));
        keys.find_map(|key| shapes.ended.get(&key).cloned())
    }

    /// Goes on with what an earlier run of the crawl wrote down.
    pub(crate) fn go_on(&self, marks: Vec<TrapMark>) {
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        // The looks are to be known again before too many pages have passed.
        self.wants_text.store(!marks.is_empty(), Ordering::Relaxed);
        for TrapMark { shape, run, rule } in marks {
            if let Some(rule) = rule {
                shapes.ended.insert(shape, rule);
                self.has_ended.store(true, Ordering::Relaxed);
            }
            let state = Shape {
                run,
                marked: run,
                is_carried: true,
                looks_forgotten: LOOKS_MAX,
                ..Shape::default()
            };
            shapes.watched.insert(shape, state);
        }
    }

    /// Takes note of a page. `new_links`: those of its links that the crawl has not met before, looked
    /// up only if need be.
    pub(crate) fn note(&self, seen: Seen<'_>, new_links: impl Iterator<Item = PageUrl>) -> Noted {
        let title = title_key(seen.url, seen.title);
        let page = (!seen.text.is_empty())
            .then(|| Arc::new(PageLook::of(seen.url, seen.title, seen.text)));
        let own = xxh3_64(seen.url.as_str().as_bytes());
        let referrer = match seen.referrer {
            Some(url) => Referrer::Page {
                url: xxh3_64(url.as_bytes()),
                is_above: PageUrl::parse(url).is_ok_and(|above| depth(&above) < depth(seen.url)),
            },
            None => Referrer::Nobody,
        };
        let own_shapes = shapes_of(seen.url);
        let is_suspect = page.is_some() && {
            let shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
            own_shapes.iter().enumerate().any(|(width, shape)| {
                let key = key_of(width, shape);
                shapes.watched.get(&key).is_some_and(|state| {
                    let referrer = state.referrer_of(seen.referrer, referrer, width, key);
                    let place = state.place_like(title, page.as_ref());
                    (place.is_some() || seen.is_soft_404) && state.is_found_on_one(place, referrer)
                })
            })
        };
        // Without the lock: the links are looked up in the store.
        let leads_on = if is_suspect { leads_on(seen.url, new_links) } else { Default::default() };
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let Shapes { watched, ended } = &mut *shapes;
        if watched.len() >= SHAPES_MAX {
            watched.retain(|key, shape| ended.contains_key(key) || shape.run > 0);
        }
        let mut noted = Noted::default();
        for (width, (shape, run_max)) in own_shapes.into_iter().zip(RUNS_MAX).enumerate() {
            let key = key_of(width, &shape);
            if watched.len() >= SHAPES_MAX && !watched.contains_key(&key) {
                continue;
            }
            let state = watched.entry(key).or_default();
            let referrer = state.referrer_of(seen.referrer, referrer, width, key);
            let look = PageSeen { title, page: page.as_ref(), is_soft_404: seen.is_soft_404, own };
            let Added { is_like, is_found_on_one } = state.add(look, referrer, leads_on[width]);
            if state.titles >= TITLES_BEFORE_TEXT {
                self.wants_text.store(true, Ordering::Relaxed);
            }
            // What an ordinary page leads to is to be found, whatever else is here.
            noted.is_repeated |= is_found_on_one && state.run >= run_max / INDEXED_SHARE;
            let mut is_new = false;
            if is_like && state.run >= run_max {
                let new = || {
                    is_new = true;
                    format!("{} pages in a row like {shape} say the same", state.run)
                };
                noted.rule = Some(ended.entry(key).or_insert_with(new).clone());
                self.has_ended.store(true, Ordering::Relaxed);
            }
            let has_ended = ended.contains_key(&key);
            if is_new || !has_ended && state.is_to_be_marked() {
                state.marked = state.run;
                let rule = ended.get(&key).cloned();
                noted.marks.push(TrapMark { shape: key, run: state.run, rule });
            }
        }
        noted
    }
}

impl Shape {
    /// What is known of the page on which one of this shape was found. It may have been a look-alike
    /// before the start: where the shape is narrow that is taken for granted; the wide ones hold lists
    /// of look-alikes, too.
    fn referrer_of(
        &self,
        url: Option<&str>,
        referrer: Referrer,
        width: usize,
        key: u64,
    ) -> Referrer {
        let is_found_before = self.is_carried
            && width < CARRIED_WIDTHS
            && url.is_some_and(|url| has_shape(url, width, key));
        if is_found_before { Referrer::LookAlike } else { referrer }
    }

    /// Adds a page.
    fn add(&mut self, seen: PageSeen<'_>, referrer: Referrer, leads_on: LeadsOn) -> Added {
        let PageSeen { title, page, is_soft_404, own } = seen;
        let is_known_title = self.looks.iter().any(|look| look.title == title);
        self.titles = if is_known_title { self.titles.saturating_add(1) } else { 0 };
        let place = self.place_like(title, page);
        let is_found_on_one = self.is_found_on_one(place, referrer);
        let descents = self.descents(referrer);
        // A list of look-alikes, such as profiles behind a login, is none of them itself.
        let members = match place {
            Some(place) => &mut self.looks[place].members,
            None if is_soft_404 => &mut self.soft_404,
            None => {
                self.add_look(title, page.cloned(), own);
                match self.looks_forgotten.checked_sub(1) {
                    Some(left) => self.looks_forgotten = left,
                    None => (self.run, self.is_carried) = (0, false),
                }
                return Added::default();
            }
        };
        members.add(own, descents);
        let is_counted = is_found_on_one
            && match leads_on {
                LeadsOn::Nowhere => false,
                LeadsOn::Deeper => descents >= DESCENTS_MIN,
                LeadsOn::Alike => true,
            };
        self.run += u32::from(is_counted);
        Added { is_like: true, is_found_on_one }
    }

    fn is_found_on_one(&self, place: Option<usize>, referrer: Referrer) -> bool {
        match referrer {
            Referrer::Nobody => false,
            Referrer::Page { url, .. } => self.leads_to(place, url),
            Referrer::LookAlike => true,
        }
    }

    /// Whether a page leads from look-alike to look-alike. `place`: the look of the page found on it;
    /// `None` is that of pages that do not exist.
    fn leads_to(&self, place: Option<usize>, page: u64) -> bool {
        let looks = self.looks.iter().map(|look| &look.members).enumerate();
        let all = looks.map(|(at, look)| (Some(at), look)).chain([(None, &self.soft_404)]);
        all.filter(|(at, look)| *at == place || look.0.len() >= TURNS_MIN)
            .any(|(_, look)| look.0.iter().any(|member| member.url == page))
    }

    /// Steps down from look-alike to look-alike to a page that was found there.
    fn descents(&self, referrer: Referrer) -> u8 {
        match referrer {
            Referrer::Page { url, is_above: true } => {
                let looks = self.looks.iter().map(|look| &look.members);
                let mut all = looks.chain([&self.soft_404]).flat_map(|members| &members.0);
                let member = all.find(|member| member.url == url);
                member.map_or(0, |member| member.descents.saturating_add(1))
            }
            Referrer::LookAlike => DESCENTS_MIN,
            Referrer::Nobody | Referrer::Page { is_above: false, .. } => 0,
        }
    }

    /// Whether the run is to be written down: it has grown by so many, or has ended.
    fn is_to_be_marked(&self) -> bool {
        self.run >= self.marked + MARK_EVERY || self.run < self.marked
    }

    /// The look of a page among those that were seen. Without a text nobody can tell.
    fn place_like(&self, title: u64, page: Option<&Arc<PageLook>>) -> Option<usize> {
        let page = page?;
        let is_like = |look: &Look| look.page.as_ref().is_some_and(|known| known.is_like(page));
        self.looks.iter().position(|look| look.title == title && is_like(look))
    }

    fn add_look(&mut self, title: u64, page: Option<Arc<PageLook>>, own: u64) {
        let known = self.looks.iter().position(|look| look.title == title && look.page.is_none());
        let place = match known {
            // Its text was not taken so far.
            Some(place) if page.is_some() => place,
            Some(_) => return,
            None if page.is_none() && self.looks.iter().any(|look| look.title == title) => return,
            None => {
                if self.looks.len() >= LOOKS_MAX {
                    self.looks.pop_front();
                }
                self.looks.push_back(Look { title, page: None, members: Members::default() });
                self.looks.len() - 1
            }
        };
        let look = &mut self.looks[place];
        if page.is_some() {
            look.members.add(own, 0);
        }
        look.page = page;
    }
}

/// The shapes of a URL, the narrowest first: its numbers left out, its directory, what lies below
/// its first directory, its host.
fn shapes_of(url: &PageUrl) -> [String; 4] {
    let origin = url.origin();
    let path = url.path().trim_end_matches('/');
    let names: Vec<&str> = url.parameter_names().collect();
    let query = if names.is_empty() { String::new() } else { format!("?{}=*", names.join("=*&")) };
    let mut plain = String::with_capacity(path.len());
    for letter in path.chars() {
        match letter {
            '0'..='9' if plain.ends_with('*') => {}
            '0'..='9' => plain.push('*'),
            other => plain.push(other),
        }
    }
    let directory = path.rfind('/').map_or("", |end| &path[..end]);
    let first = path.split('/').nth(1).unwrap_or_default();
    [
        format!("{origin}{plain}{query}"),
        format!("{origin}{directory}/*{}", if query.is_empty() { "" } else { "?*" }),
        format!("{origin}/{first}/**"),
        format!("{origin}/**"),
    ]
}

/// Where a page leads by its new links, for each of its shapes.
fn leads_on(url: &PageUrl, new_links: impl Iterator<Item = PageUrl>) -> [LeadsOn; 4] {
    let own = shapes_of(url);
    let mut found = [LeadsOn::Nowhere; 4];
    for link in new_links {
        let is_alike = depth(&link) == depth(url);
        let shapes = shapes_of(&link);
        let same = found.iter_mut().zip(own.iter().zip(&shapes)).filter(|(_, (a, b))| a == b);
        for (found, _) in same {
            *found = match (is_alike, *found) {
                (true, _) | (_, LeadsOn::Alike) => LeadsOn::Alike,
                (false, LeadsOn::Nowhere | LeadsOn::Deeper) => LeadsOn::Deeper,
            };
        }
        if found == [LeadsOn::Alike; 4] {
            break;
        }
    }
    found
}

/// Directories of a path, and the page.
fn depth(url: &PageUrl) -> usize {
    url.path().trim_end_matches('/').split('/').count()
}

/// Whether a URL has this shape.
fn has_shape(url: &str, width: usize, key: u64) -> bool {
    let Ok(url) = PageUrl::parse(url) else { return false };
    key_of(width, &shapes_of(&url)[width]) == key
}

/// The narrowest shape of one page may read like a wider one of another. Kept in the store: another way
/// to make keys would forget the traps of crawls that go on.
fn key_of(width: usize, shape: &str) -> u64 {
    xxh3_64(shape.as_bytes()).wrapping_add(width as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "you have come to a room with many doors all of which look the same choose one";

    /// A page that leads on to these new ones, and to known ones.
    fn note(watch: &TrapWatch, seen: Seen<'_>, new: &[&str]) -> Noted {
        let new = new.iter().map(|path| PageUrl::parse(&format!("http://a.org{path}")).unwrap());
        watch.note(seen, new)
    }

    /// Walks through a site whose pages each lead to the next, and counts those taken before a rule.
    fn pages_until_rule(path: impl Fn(u32) -> String, text: impl Fn(u32) -> String) -> Option<u32> {
        let watch = TrapWatch::default();
        let url = |n| PageUrl::parse(&format!("http://a.org{}", path(n))).unwrap();
        (1..1000).find(|&n| {
            let (url, referrer) = (url(n), url(n - 1).to_string());
            let text = text(n);
            let seen = Seen {
                url: &url,
                referrer: Some(&referrer),
                title: "A room",
                text: &text,
                is_soft_404: false,
            };
            let rule = note(&watch, seen, &[&path(n + 1)]).rule;
            assert_eq!(rule, watch.rule_for(&url));
            rule.is_some()
        })
    }

    /// Words of a page of its own.
    fn words(n: u32) -> String {
        (0..50).map(|k: u32| format!("{} ", k.wrapping_mul(n).wrapping_mul(0x9E37_79B1))).collect()
    }

    #[test]
    fn endless_look_alikes_end_after_some_dozens() {
        let said = |n: u32| format!("{TEXT} {n}");
        let numbered = pages_until_rule(|n| format!("/room/{n}"), said).unwrap();
        assert!((60..70).contains(&numbered), "{numbered}");
        let name =
            |n: u32| format!("{:x}", n.wrapping_mul(0x9E37_79B1)).replace(char::is_numeric, "q");
        let named =
            pages_until_rule(|n| format!("/room/{}", name(n)), |_| TEXT.to_owned()).unwrap();
        assert!((80..90).contains(&named), "{named}");
        let deep = |n: u32| format!("/maze/{}/{}", name(n), name(n + 7));
        let deep = pages_until_rule(deep, |_| TEXT.to_owned()).unwrap();
        assert!((100..110).contains(&deep), "{deep}");
    }

    /// Walks through rooms that say by turns one thing or another; counts the pages that are to be
    /// found before the trap is found out, and all of them.
    fn walk_on(watch: &TrapWatch, rooms: std::ops::Range<u32>, turns: u32) -> (u32, Option<u32>) {
        let mut found = 0;
        let mut say = |n: u32| {
            let url = PageUrl::parse(&format!("http://a.org/room/{n}")).unwrap();
            let referrer = format!("http://a.org/room/{}", n - 1);
            let (title, text) = match n % turns {
                0 => ("A room", TEXT),
                1 => (
                    "A hall",
                    "this is a large hall with a fire in its middle and no way out of it",
                ),
                _ => (
                    "A stair",
                    "a narrow stair leads up and down from here into the dark of the house",
                ),
            };
            let referrer = Some(referrer.as_str());
            let seen = Seen { url: &url, referrer, title, text, is_soft_404: false };
            let noted = note(watch, seen, &[&format!("/room/{}", n + 1)]);
            found += u32::from(!noted.is_repeated && noted.rule.is_none());
            noted.rule.is_some()
        };
        let end = rooms.into_iter().find(|&n| say(n));
        (found, end)
    }

    /// Rooms and halls by turns: each is found on the other, and both are look-alikes.
    #[test]
    fn a_trap_that_takes_turns_ends_too() {
        for turns in [1, 2, 3] {
            let (found, end) = walk_on(&TrapWatch::default(), 1..1000, turns);
            let end = end.unwrap_or_else(|| panic!("{turns} looks by turns"));
            assert!((60..75).contains(&end), "{turns}: {end}");
            assert!(found < 25, "{turns}: {found} are to be found");
        }
    }

    /// After a restart the run goes on where it was written down, in the middle or at its end.
    #[test]
    fn a_trap_does_not_begin_again_after_a_restart() {
        for turns in [1, 2, 3] {
            let before = TrapWatch::default();
            let mut marks: HashMap<u64, TrapMark> = HashMap::new();
            for n in 1..=48 {
                let url = PageUrl::parse(&format!("http://a.org/room/{n}")).unwrap();
                let referrer = format!("http://a.org/room/{}", n - 1);
                let title = ["A room", "A hall", "A stair"][n % turns];
                let referrer = Some(referrer.as_str());
                let seen = Seen { url: &url, referrer, title, text: TEXT, is_soft_404: false };
                let noted = note(&before, seen, &[&format!("/room/{}", n + 1)]);
                marks.extend(noted.marks.into_iter().map(|mark| (mark.shape, mark)));
            }
            let after = TrapWatch::default();
            after.go_on(marks.into_values().collect());
            let (_, end) = walk_on(&after, 49..1000, turns as u32);
            assert!((60..90).contains(&end.unwrap()), "{turns}: {end:?}");
        }
    }

    #[test]
    fn a_trap_that_was_found_out_stays_so_after_a_restart() {
        let before = TrapWatch::default();
        let mut marks = Vec::new();
        for n in 1..=70 {
            let url = PageUrl::parse(&format!("http://a.org/room/{n}")).unwrap();
            let referrer = format!("http://a.org/room/{}", n - 1);
            let referrer = Some(referrer.as_str());
            let title = "A room";
            let seen = Seen { url: &url, referrer, title, text: TEXT, is_soft_404: false };
            let noted = note(&before, seen, &[&format!("/room/{}", n + 1)]);
            marks.extend(noted.marks);
        }
        let after = TrapWatch::default();
        after.go_on(marks);
        let next = PageUrl::parse("http://a.org/room/71").unwrap();
        assert_eq!(after.rule_for(&next), before.rule_for(&next));
        assert!(after.rule_for(&next).is_some());
    }

    /// A shape that has something to say is not held to what it said before.
    #[test]
    fn a_run_that_ends_is_not_written_down() {
        let watch = TrapWatch::default();
        let (_, end) = walk_on(&watch, 1..40, 1);
        assert_eq!(end, None);
        let url = PageUrl::parse("http://a.org/room/40").unwrap();
        let (title, text) = ("A library", "here are books of all kinds in long rows upon shelves");
        let seen = Seen { url: &url, referrer: None, title, text, is_soft_404: false };
        let noted = note(&watch, seen, &[]);
        assert!(noted.marks.iter().all(|mark| mark.run == 0) && !noted.marks.is_empty());
    }

    #[test]
    fn pages_that_say_something_go_on() {
        let said = |n: u32| words(n).replace(char::is_numeric, "x") + &words(n);
        assert_eq!(pages_until_rule(|n| format!("/item/{n}"), said), None);
    }

    /// A list of look-alikes is no trap: it has an end.
    #[test]
    fn look_alikes_that_do_not_lead_to_each_other_go_on() {
        let watch = TrapWatch::default();
        for n in 0..1000 {
            let url = PageUrl::parse(&format!("http://a.org/item/{n}")).unwrap();
            let seen = Seen {
                url: &url,
                referrer: Some("http://a.org/list"),
                title: "Item",
                text: TEXT,
                is_soft_404: false,
            };
            assert_eq!(note(&watch, seen, &["/item/new"]), Noted::default());
        }
    }

    /// Profiles behind a login are found on the list of members, which is on the same host and says
    /// something else; nor do they make the site's other pages a trap.
    #[test]
    fn a_list_of_look_alikes_on_the_same_host_goes_on() {
        let watch = TrapWatch::default();
        let note = |path: &str, referrer: &str, title: &str, text: &str| {
            let url = PageUrl::parse(&format!("http://a.org{path}")).unwrap();
            let referrer = format!("http://a.org{referrer}");
            let is_soft_404 = false;
            let seen = Seen { url: &url, referrer: Some(&referrer), title, text, is_soft_404 };
            note(&watch, seen, &[]).rule
        };
        let list = "here are all the members of our forum in the order in which they came to us";
        assert_eq!(note("/members", "/", "Members", list), None);
        for n in 0..300 {
            assert_eq!(note(&format!("/members/{n}"), "/members", "Log in", TEXT), None);
        }
        assert_eq!(note("/thread/1", "/", "A thread", list), None);
    }

    /// Stubs of one template under one directory, found on a list that looks like them. `new`: what
    /// a stub leads to that nobody knew.
    fn note_stubs(new: impl Fn(u32) -> Option<String>) -> TrapWatch {
        let watch = TrapWatch::default();
        let list = PageUrl::parse("http://a.org/words").unwrap();
        for page in 0..20 {
            let (url, referrer) = (list.with_page(page), list.with_page(page.saturating_sub(1)));
            let referrer = Some(referrer.as_str());
            let title = "Words";
            let seen = Seen { url: &url, referrer, title, text: TEXT, is_soft_404: false };
            assert_eq!(note(&watch, seen, &[]), Noted::default());
            for n in page * 50..(page + 1) * 50 {
                let stub = PageUrl::parse(&format!("http://a.org/words/{}", name(n))).unwrap();
                let referrer = Some(url.as_str());
                let seen = Seen { url: &stub, referrer, title, text: TEXT, is_soft_404: false };
                let new = new(n);
                let new: Vec<&str> = new.iter().map(String::as_str).collect();
                assert_eq!(note(&watch, seen, &new), Noted::default(), "{n}: {stub}");
            }
        }
        watch
    }

    /// A name without digits.
    fn name(n: u32) -> String {
        n.to_string().bytes().map(|digit| char::from(digit + 49)).collect()
    }

    trait Paged {
        fn with_page(&self, page: u32) -> PageUrl;
    }

    impl Paged for PageUrl {
        fn with_page(&self, page: u32) -> PageUrl {
            PageUrl::parse(&format!("{self}/{page}")).unwrap()
        }
    }

    /// They lead to each other, and all of them are known from the list.
    #[test]
    fn stubs_on_lists_that_look_like_them_go_on() {
        note_stubs(|_| None);
    }

    /// A profile has a page of posts: new, and not a profile.
    #[test]
    fn stubs_with_one_page_below_each_go_on() {
        let watch = note_stubs(|n| Some(format!("/words/{}/posts", name(n))));
        for n in 0..1000 {
            let url = PageUrl::parse(&format!("http://a.org/words/{}/posts", name(n))).unwrap();
            let referrer = format!("http://a.org/words/{}", name(n));
            let seen = Seen {
                url: &url,
                referrer: Some(&referrer),
                title: "Posts",
                text: "nobody has written anything here so far come back in a day or two",
                is_soft_404: false,
            };
            assert_eq!(note(&watch, seen, &[]), Noted::default(), "{n}");
        }
    }

    /// A look into the store costs time, and most pages are like no other.
    #[test]
    fn links_are_looked_up_for_look_alikes_only() {
        let watch = note_stubs(|_| None);
        for n in 0..10 {
            let url = PageUrl::parse(&format!("http://a.org/words/article{n}")).unwrap();
            let text = words(n);
            let seen = Seen {
                url: &url,
                referrer: Some("http://a.org/words/19"),
                title: "An article",
                text: &text,
                is_soft_404: false,
            };
            watch.note(seen, std::iter::from_fn(|| panic!("the links of {url} are looked up")));
        }
    }

    /// Each room has a hundred doors, all of which lead to new rooms.
    #[test]
    fn a_trap_with_many_doors_ends_after_some_dozens() {
        let watch = TrapWatch::default();
        let end = (2..1000).find(|&n: &u32| {
            let url = PageUrl::parse(&format!("http://a.org/room/{n}")).unwrap();
            let referrer = format!("http://a.org/room/{}", (n + 98) / 100);
            let seen = Seen {
                url: &url,
                referrer: Some(&referrer),
                title: "A room",
                text: TEXT,
                is_soft_404: false,
            };
            let doors: Vec<String> =
                (0..100).map(|door| format!("/room/{}", n * 100 - 98 + door)).collect();
            let doors: Vec<&str> = doors.iter().map(String::as_str).collect();
            if n == 2 {
                let first = PageUrl::parse("http://a.org/room/1").unwrap();
                note(&watch, Seen { url: &first, referrer: None, ..seen }, &doors);
            }
            note(&watch, seen, &doors).rule.is_some()
        });
        assert!(end.is_some_and(|end| end < 70), "{end:?}");
    }

    /// Each room is below the one that leads to it.
    #[test]
    fn a_trap_that_grows_deeper_ends_too() {
        let deeper = |n: u32| (0..n).map(|k| format!("/{}", name(k))).collect::<String>();
        let path = |n: u32| format!("/maze{}", deeper(n));
        let end = pages_until_rule(path, |_| TEXT.to_owned());
        assert!(end.is_some_and(|end| end < 120), "{end:?}");
    }
}
