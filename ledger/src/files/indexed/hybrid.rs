//! Small numbers as Parquet packs them: runs of one number, and eights of others bit by bit.
//!
//! Source: Parquet's format, "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)".

/// Numbers of `width` bits, given in runs.
pub(super) fn hybrid(runs: impl Iterator<Item = (u32, usize)>, width: u32, out: &mut Vec<u8>) {
    let mut packer = Packer { loose: Vec::new(), width, out };
    let mut open = (0, 0);
    for (value, n) in runs {
        if value == open.0 {
            open.1 += n;
        } else {
            packer.put(open.0, open.1);
            open = (value, n);
        }
    }
    packer.put(open.0, open.1);
    packer.pack();
}

struct Packer<'a> {
    /// Numbers of runs too short to be written as runs.
    loose: Vec<u32>,
    width: u32,
    out: &'a mut Vec<u8>,
}

impl Packer<'_> {
    fn put(&mut self, value: u32, n: usize) {
        // Only whole eights can be packed before a run.
        let fill = self.loose.len().next_multiple_of(8) - self.loose.len();
        if n < fill + 8 {
            self.loose.extend(std::iter::repeat_n(value, n));
            return;
        }
        self.loose.extend(std::iter::repeat_n(value, fill));
        self.pack();
        varint((n - fill) << 1, self.out);
        self.out.extend_from_slice(&value.to_le_bytes()[..self.width.div_ceil(8) as usize]);
    }

    fn pack(&mut self) {
        if self.loose.is_empty() {
            return;
        }
        self.loose.resize(self.loose.len().next_multiple_of(8), 0);
        varint((self.loose.len() / 8) << 1 | 1, self.out);
        bits(self.loose.drain(..), self.width, self.out);
    }
}

/// Numbers of `width` bits one behind the other, the lowest bit first; the last byte is filled up with zeros.
pub(super) fn bits(numbers: impl Iterator<Item = u32>, width: u32, out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0_u64, 0);
    for number in numbers {
        bits |= u64::from(number) << held;
        held += width;
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(bits as u8);
    }
}

fn varint(mut n: usize, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(runs: &[(u32, usize)], width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        hybrid(runs.iter().copied(), width, &mut out);
        out
    }

    #[test]
    fn eights_are_packed_as_the_format_says() {
        // The format's own example: the numbers 0 to 7 in three bits each.
        let numbers: Vec<_> = (0..8).map(|n| (n, 1)).collect();
        assert_eq!(packed(&numbers, 3), [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn a_long_run_is_a_length_and_a_number() {
        // 1,000 << 1 = 2,000 = 0b1111_1010000: the low seven bits with a mark, then the rest; 300 in two bytes.
        assert_eq!(packed(&[(300, 1000)], 9), [0b1101_0000, 0b1111, 0x2c, 0x01]);
        // Of no bits there is no number.
        assert_eq!(packed(&[(0, 9)], 0), [18]);
    }

    #[test]
    fn a_run_fills_up_the_eight_before_it() {
        // 1 0 0 0 0 0 0 0 packed, then the eight zeros that are left, as a run.
        assert_eq!(packed(&[(1, 1), (0, 15)], 1), [0b11, 1, 16, 0]);
        // One fewer, and all are packed: two eights.
        assert_eq!(packed(&[(1, 1), (0, 14)], 1), [0b101, 1, 0]);
        // Runs of the same number are one.
        assert_eq!(packed(&[(1, 3), (1, 5)], 1), [16, 1]);
        assert!(packed(&[], 1).is_empty());
    }
}
