//! Dates, times and intervals as text, in the styles of the session.

mod interval_text;
mod moment_text;

pub use interval_text::format_interval;
pub use moment_text::{
    OffsetMinutes, format_date, format_time, format_timestamp, format_timestamptz, write_offset,
    write_xsd,
};
