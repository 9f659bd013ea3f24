//! The rows of the table of page views: few columns with many values and many with few, texts that
//! are often empty, and values that follow a power law, as in logs of web sites.

use anyhow::Result;

use crate::sql::{SqlConnection, Value};
use crate::tpch::data::date;
use crate::workload::random::{Random, mix};

/// The definition of the table.
pub const TABLE: &str = "CREATE TABLE clicks (hit BIGINT NOT NULL, moment TIMESTAMP NOT NULL, \
     day DATE NOT NULL, site INTEGER NOT NULL, address INTEGER NOT NULL, region INTEGER NOT NULL, \
     visitor BIGINT NOT NULL, url VARCHAR(200) NOT NULL, referrer VARCHAR(200) NOT NULL, \
     title VARCHAR(100) NOT NULL, phrase VARCHAR(80) NOT NULL, engine INTEGER NOT NULL, \
     advert INTEGER NOT NULL, width INTEGER NOT NULL, phone INTEGER NOT NULL, \
     model VARCHAR(20) NOT NULL, refresh INTEGER NOT NULL, link INTEGER NOT NULL, \
     download INTEGER NOT NULL, source INTEGER NOT NULL, url_hash BIGINT NOT NULL, \
     referrer_hash BIGINT NOT NULL, uncounted INTEGER NOT NULL, window_width INTEGER NOT NULL, \
     window_height INTEGER NOT NULL, PRIMARY KEY (hit))";

/// The columns of the table.
const WIDTH: usize = 25;

/// 2013-07-01, the first of 31 days, counted from 1970-01-01.
const FIRST_DAY: i32 = 15_887;
const DAYS: u64 = 31;
const DAY_SECONDS: u64 = 86_400;

const HOSTS: [&str; 12] = [
    "shop.example",
    "news.example",
    "google.example",
    "mail.example",
    "maps.google.example",
    "forum.example",
    "video.example",
    "wiki.example",
    "travel.example",
    "games.example",
    "music.example",
    "cars.example",
];
const WORDS: [&str; 24] = [
    "red", "car", "Google", "weather", "buy", "cheap", "house", "film", "watch", "photo", "free",
    "city", "winter", "tyres", "phone", "recipe", "school", "train", "ticket", "bank", "river",
    "garden", "music", "map",
];
const MODELS: [&str; 8] = ["", "", "", "", "A100", "N95", "S2", "iP4"];
const WIDTHS: [i32; 6] = [1024, 1280, 1366, 1600, 1920, 2560];

/// A number below a bound, small ones more often.
fn skewed(random: &mut Random, bound: u64) -> u64 {
    ((bound as f64 * random.fraction().powi(3)) as u64).min(bound.saturating_sub(1))
}

fn picked<T: Copy>(list: &[T], random: &mut Random) -> Option<T> {
    list.get(random.below(list.len() as u64) as usize).copied()
}

fn words(random: &mut Random, most: u64) -> String {
    let count = 1 + random.below(most);
    let words = (0..count).filter_map(|_| picked(&WORDS, random));
    words.collect::<Vec<&str>>().join(" ")
}

/// An address of a page. Some are looked at far more often than others. It has small letters only,
/// as SQLite's LIKE does not tell letters by their case.
fn address(random: &mut Random, pages: u64) -> (String, i64) {
    let page = skewed(random, pages);
    let own = &mut Random::new(mix(page));
    let host = picked(&HOSTS, own).unwrap_or_default();
    let path = words(own, 3).replace(' ', "/").to_lowercase();
    (format!("http://{host}/{path}/{page}"), (mix(page) >> 1) as i64)
}

/// Fills the table with `rows` rows.
pub fn load(connection: &mut dyn SqlConnection, rows: u64, seed: u64) -> Result<()> {
    connection.load("clicks", WIDTH, &mut |take| {
        (0..rows).try_for_each(|number| row(number, rows, seed, take))
    })
}

fn row(
    number: u64,
    rows: u64,
    seed: u64,
    take: &mut dyn FnMut(&[Value<'_>]) -> Result<()>,
) -> Result<()> {
    let random = &mut Random::new(mix(seed ^ mix(number)));
    let second = random.below(DAYS * DAY_SECONDS);
    let day = date(FIRST_DAY + (second / DAY_SECONDS) as i32);
    let of_day = second % DAY_SECONDS;
    let moment = format!("{day} {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    let visitor = skewed(random, rows / 6 + 1);
    let (url, url_hash) = address(random, rows / 4 + 1);
    let (referrer, referrer_hash) = match random.below(5) {
        0 => (String::new(), 0),
        _ => address(random, rows / 8 + 1),
    };
    let phrase = match random.below(8) {
        0 => words(random, 4),
        _ => String::new(),
    };
    let model = picked(&MODELS, random).unwrap_or_default();
    let engine = if phrase.is_empty() { 0 } else { 1 + skewed(random, 30) as i32 };
    let advert = if random.below(50) == 0 { 1 + skewed(random, 20) as i32 } else { 0 };
    let width = picked(&WIDTHS, random).unwrap_or_default();
    let flag = |random: &mut Random, of: u64| Value::Integer(i32::from(random.below(of) == 0));
    let small = |number: u64| Value::Integer(number as i32);
    let title = words(random, 5);
    take(&[
        Value::Bigint(number as i64),
        Value::Text(&moment),
        Value::Text(&day),
        small(skewed(random, 5_000)),
        small(mix(visitor) >> 34),
        small(skewed(random, 9_000)),
        Value::Bigint((mix(visitor) >> 4) as i64),
        Value::Text(&url),
        Value::Text(&referrer),
        Value::Text(&title),
        Value::Text(&phrase),
        Value::Integer(engine),
        Value::Integer(advert),
        Value::Integer(width),
        small(if model.is_empty() { 0 } else { 1 + random.below(60) }),
        Value::Text(model),
        flag(random, 7),
        flag(random, 12),
        flag(random, 90),
        Value::Integer(random.below(9) as i32 - 1),
        Value::Bigint(url_hash),
        Value::Bigint(referrer_hash),
        flag(random, 20),
        Value::Integer(width - random.below(200) as i32),
        small(500 + random.below(600)),
    ])
}
