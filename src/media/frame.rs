//! The frame: 20 ms of mono i16, the unit in which sound moves through the house.
//!
//! Owns the constants and the sample/millisecond conversions. Called by everyone. Never holds sound.

/// Length of a frame in milliseconds.
pub const FRAME_MS: u64 = 20;
/// The rate at which the house listens (voice activity, recognition), in Hz.
pub const EAR_HZ: u32 = 16_000;
/// Samples in one frame at [`EAR_HZ`].
pub const EAR_FRAME: usize = 320;

/// Samples in one frame at `rate_hz` (441 at 22,050 Hz; rates that 50 does not divide are rounded down).
pub fn frame_len(rate_hz: u32) -> usize {
    samples_in(FRAME_MS, rate_hz) as usize
}

/// Samples in `ms` milliseconds at `rate_hz`, rounded down.
pub fn samples_in(ms: u64, rate_hz: u32) -> u64 {
    ms.saturating_mul(u64::from(rate_hz)) / 1000
}

/// Milliseconds that `samples` last at `rate_hz`, rounded down. 0 at rate 0.
pub fn ms_of(samples: u64, rate_hz: u32) -> u64 {
    if rate_hz == 0 { 0 } else { samples.saturating_mul(1000) / u64::from(rate_hz) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_known_lengths() {
        assert_eq!(frame_len(EAR_HZ), EAR_FRAME);
        assert_eq!(frame_len(22_050), 441);
        assert_eq!(frame_len(48_000), 960);
        assert_eq!(ms_of(480, 24_000), 20);
        assert_eq!(ms_of(480, 0), 0);
        assert_eq!(samples_in(u64::MAX, 1), u64::MAX / 1000);
    }
}
