//! Reads on while what was read is worked on.

use std::sync::mpsc::sync_channel;

/// Items that are handed over at once: handing over costs more than a record does.
const AT_ONCE: usize = 512;

/// Batches that may wait. With [`AT_ONCE`], the most that is read ahead.
const WAITING: usize = 16;

/// Does `work` to `items`, which are made on a thread of their own meanwhile, in their order. Work that stops early stops the making.
pub fn ahead<T: Send, R>(
    items: impl Iterator<Item = T> + Send,
    work: impl FnOnce(&mut dyn Iterator<Item = T>) -> R,
) -> R {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Vec<T>>(WAITING);
        scope.spawn(move || {
            let mut items = items;
            loop {
                let batch: Vec<T> = items.by_ref().take(AT_ONCE).collect();
                if batch.is_empty() || send.send(batch).is_err() {
                    return;
                }
            }
        });
        work(&mut receive.into_iter().flatten())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_their_order_and_none_is_lost() {
        let sum = ahead(0..10_000u64, |items| {
            items
                .zip(0..)
                .map(|(item, expected)| {
                    assert_eq!(item, expected);
                    item
                })
                .sum::<u64>()
        });
        // Gauss: 9,999 × 10,000 / 2.
        assert_eq!(sum, 49_995_000);
    }

    #[test]
    fn work_that_stops_early_stops_the_making() {
        assert_eq!(ahead(0.., |items| items.nth(3)), Some(3));
    }
}
