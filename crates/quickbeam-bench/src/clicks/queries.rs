//! The queries: scans and aggregations of one wide table in the manner of ClickBench (ClickHouse's
//! "ClickBench: a Benchmark For Analytical DBMS"), whose 43 queries these follow in their kinds. An
//! order that is not total there is completed by further keys here, so that answers can be
//! compared.

/// The queries, with placeholders: `{minute of x}`, the minute of a moment as a number, `{start of
/// minute of x}`, and `{host of x}` of an address.
pub const QUERIES: [&str; 43] = [
    "select count(*) from clicks",
    "select count(*) from clicks where advert <> 0",
    "select sum(advert), count(*), avg(width) from clicks",
    "select avg(visitor) from clicks",
    "select count(distinct visitor) from clicks",
    "select count(distinct phrase) from clicks",
    "select min(day), max(day) from clicks",
    "select advert, count(*) as c from clicks where advert <> 0 group by advert \
     order by c desc, advert",
    "select region, count(distinct visitor) as u from clicks group by region \
     order by u desc, region limit 10",
    "select region, sum(advert), count(*) as c, avg(width), count(distinct visitor) from clicks \
     group by region order by c desc, region limit 10",
    "select model, count(distinct visitor) as u from clicks where model <> '' group by model \
     order by u desc, model limit 10",
    "select phone, model, count(distinct visitor) as u from clicks where model <> '' \
     group by phone, model order by u desc, phone, model limit 10",
    "select phrase, count(*) as c from clicks where phrase <> '' group by phrase \
     order by c desc, phrase limit 10",
    "select phrase, count(distinct visitor) as u from clicks where phrase <> '' group by phrase \
     order by u desc, phrase limit 10",
    "select engine, phrase, count(*) as c from clicks where phrase <> '' group by engine, phrase \
     order by c desc, engine, phrase limit 10",
    "select visitor, count(*) as c from clicks group by visitor order by c desc, visitor limit 10",
    "select visitor, phrase, count(*) as c from clicks group by visitor, phrase \
     order by c desc, visitor, phrase limit 10",
    "select visitor, phrase, count(*) from clicks group by visitor, phrase \
     order by visitor, phrase limit 10",
    "select visitor, {minute of moment} as m, phrase, count(*) as c from clicks \
     group by visitor, {minute of moment}, phrase order by c desc, visitor, m, phrase limit 10",
    "select count(*) from clicks where visitor = 435090932899640449",
    "select count(*) from clicks where url like '%google%'",
    "select phrase, min(url), count(*) as c from clicks where url like '%google%' \
     and phrase <> '' group by phrase order by c desc, phrase limit 10",
    "select phrase, min(url), min(title), count(*) as c, count(distinct visitor) from clicks \
     where title like '%Google%' and url not like '%.google.%' and phrase <> '' group by phrase \
     order by c desc, phrase limit 10",
    "select hit, moment, url, referrer, title, phrase, visitor, region from clicks \
     where url like '%google%' order by moment, hit limit 10",
    "select phrase from clicks where phrase <> '' order by moment, hit limit 10",
    "select phrase from clicks where phrase <> '' order by phrase limit 10",
    "select phrase from clicks where phrase <> '' order by moment, phrase, hit limit 10",
    "select site, avg(length(url)) as l, count(*) as c from clicks where url <> '' group by site \
     having count(*) > 300 order by l desc, site limit 25",
    "select {host of referrer} as k, avg(length(referrer)) as l, count(*) as c, min(referrer) \
     from clicks where referrer <> '' group by {host of referrer} having count(*) > 300 \
     order by l desc, k limit 25",
    "{90 sums}",
    "select engine, address, count(*) as c, sum(refresh), avg(width) from clicks \
     where phrase <> '' group by engine, address order by c desc, engine, address limit 10",
    "select hit, address, count(*) as c, sum(refresh), avg(width) from clicks \
     where phrase <> '' group by hit, address order by c desc, hit, address limit 10",
    "select hit, address, count(*) as c, sum(refresh), avg(width) from clicks \
     group by hit, address order by c desc, hit, address limit 10",
    "select url, count(*) as c from clicks group by url order by c desc, url limit 10",
    "select 1 as one, url, count(*) as c from clicks group by url order by c desc, url limit 10",
    "select address, address - 1 as a, address - 2 as b, address - 3 as d, count(*) as c \
     from clicks group by address, address - 1, address - 2, address - 3 \
     order by c desc, address limit 10",
    "select url, count(*) as views from clicks where site = 62 and {day 1 to 31} \
     and uncounted = 0 and refresh = 0 and url <> '' group by url order by views desc, url limit 10",
    "select title, count(*) as views from clicks where site = 62 and {day 1 to 31} \
     and uncounted = 0 and refresh = 0 and title <> '' group by title \
     order by views desc, title limit 10",
    "select url, count(*) as views from clicks where site < 62 and {day 1 to 31} \
     and refresh = 0 and link <> 0 and download = 0 group by url \
     order by views desc, url limit 10 offset 100",
    "select source, engine, advert, case when engine = 0 and advert = 0 then referrer else '' end \
     as src, url as dst, count(*) as views from clicks where site < 62 and {day 1 to 31} \
     and refresh = 0 group by source, engine, advert, case when engine = 0 and advert = 0 \
     then referrer else '' end, url order by views desc, source, engine, advert, src, dst \
     limit 10 offset 100",
    "select url_hash, day, count(*) as views from clicks where site < 62 and {day 1 to 31} \
     and refresh = 0 and source in (-1, 6) and referrer_hash <> 0 group by url_hash, day \
     order by views desc, url_hash, day limit 10 offset 10",
    "select window_width, window_height, count(*) as views from clicks where site < 62 \
     and {day 1 to 31} and refresh = 0 and uncounted = 0 and url_hash <> 0 \
     group by window_width, window_height order by views desc, window_width, window_height \
     limit 10 offset 100",
    "select {start of minute of moment} as m, count(*) as views from clicks where site < 62 \
     and {day 14 to 15} and refresh = 0 and uncounted = 0 group by {start of minute of moment} \
     order by m limit 10 offset 10",
];

/// Query 30.
fn sums() -> String {
    let sum = |number: u32| match number {
        0 => "sum(width)".to_owned(),
        number => format!("sum(width + {number})"),
    };
    let sums: Vec<String> = (0..90).map(sum).collect();
    format!("select {} from clicks", sums.join(", "))
}

/// A query in the words of an engine: `sqlite` for its date functions.
pub fn spelled(query: &str, sqlite: bool) -> String {
    let mut text = String::with_capacity(query.len() + 64);
    let mut pieces = query.split('{');
    text.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (marker, rest) = piece.split_once('}').unwrap_or((piece, ""));
        text.push_str(&filled(marker, sqlite));
        text.push_str(rest);
    }
    text
}

fn filled(marker: &str, sqlite: bool) -> String {
    let words: Vec<&str> = marker.split(' ').collect();
    match (&words[..], sqlite) {
        (["90", "sums"], _) => sums(),
        (["minute", "of", moment], false) => format!("extract(minute from {moment})"),
        (["minute", "of", moment], true) => format!("cast(strftime('%M', {moment}) as integer)"),
        (["start", "of", "minute", "of", moment], false) => {
            format!("date_trunc('minute', {moment})")
        }
        (["start", "of", "minute", "of", moment], true) => {
            format!("strftime('%Y-%m-%d %H:%M:00', {moment})")
        }
        (["host", "of", address], false) => format!("split_part({address}, '/', 3)"),
        (["host", "of", address], true) => {
            format!("substr({address}, 8, instr(substr({address}, 8), '/') - 1)")
        }
        (["day", first, "to", last], _) => {
            let date = if sqlite { "" } else { "date " };
            format!("day >= {date}'2013-07-{first:0>2}' and day <= {date}'2013-07-{last:0>2}'")
        }
        _ => marker.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_spelled_for_each_engine() {
        let query = "select {minute of m}, {host of u} where {day 1 to 31}";
        let standard = "select extract(minute from m), split_part(u, '/', 3) \
                        where day >= date '2013-07-01' and day <= date '2013-07-31'";
        assert_eq!(spelled(query, false), standard);
        assert!(spelled(query, true).contains("day >= '2013-07-01'"));
        for query in QUERIES {
            assert!(!spelled(query, true).contains(['{', '}']), "{query}");
            assert!(!spelled(query, false).contains(['{', '}']), "{query}");
        }
        assert_eq!(sums().matches("sum(").count(), 90);
    }
}
