//! Reads on while what was read is worked on.

use std::sync::mpsc::{channel, sync_channel};

/// Items that are handed over at once: handing over costs more than a record does.
const AT_ONCE: usize = 512;

/// Batches that may wait. With [`AT_ONCE`], the most that is read ahead.
const WAITING: usize = 16;

/// Does `work` to `items`, which are made on a thread of their own meanwhile, in their order.
///
/// Items go back to the thread that made them when they are done with: memory costs least where it came from.
pub fn ahead<T: Send>(items: impl Iterator<Item = T> + Send, mut work: impl FnMut(&mut T)) {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Vec<T>>(WAITING);
        let (give_back, given_back) = channel::<Vec<T>>();
        scope.spawn(move || {
            let mut items = items;
            loop {
                let mut batch = given_back.try_recv().unwrap_or_default();
                batch.clear();
                batch.extend(items.by_ref().take(AT_ONCE));
                if batch.is_empty() || send.send(batch).is_err() {
                    return;
                }
            }
        });
        for mut batch in receive {
            batch.iter_mut().for_each(&mut work);
            // Nobody takes the last ones.
            let _ = give_back.send(batch);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_their_order_and_none_is_lost() {
        let mut seen = Vec::new();
        ahead((0..10_000u64).map(|i| vec![i]), |item| seen.append(item));
        assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
    }
}
