//! Shrinks a failed sequence: removes and simplifies steps while it still fails.

/// Removes steps, and replaces the others by `simpler` ones, as long as the rest still `fails`. Calls `fails` at most
/// `runs` times.
pub async fn shrink<T: Clone>(
    steps: Vec<T>,
    runs: usize,
    simpler: impl Fn(&T) -> Vec<T>,
    fails: impl AsyncFnMut(&[T]) -> bool,
) -> Vec<T> {
    let mut shrinker = Shrinker { steps, runs, fails };
    shrinker.remove_chunks().await;
    // Some steps can only be removed together, such as an enqueue and the claim that takes its job.
    while shrinker.remove_a_pair().await || shrinker.simplify(&simpler).await {
        shrinker.remove_chunks().await;
    }
    shrinker.steps
}

struct Shrinker<T, F> {
    steps: Vec<T>,
    runs: usize,
    fails: F,
}

impl<T: Clone, F: AsyncFnMut(&[T]) -> bool> Shrinker<T, F> {
    /// Continues with `steps` if they fail too.
    async fn accept(&mut self, steps: Vec<T>) -> bool {
        if self.runs == 0 {
            return false;
        }
        self.runs -= 1;
        let fails = (self.fails)(&steps).await;
        if fails {
            self.steps = steps;
        }
        fails
    }

    fn without(&self, removed: impl Fn(usize) -> bool) -> Vec<T> {
        self.steps.iter().enumerate().filter(|(i, _)| !removed(*i)).map(|(_, step)| step.clone()).collect()
    }

    /// Removes halves first and single steps last, the latter until none can be removed.
    async fn remove_chunks(&mut self) {
        let mut chunk = self.steps.len().div_ceil(2);
        while chunk > 0 && self.runs > 0 {
            let before = self.steps.len();
            // From the end, because a late step does not affect earlier ones.
            let mut end = before;
            while end > 0 && self.runs > 0 {
                let from = end.saturating_sub(chunk);
                self.accept(self.without(|i| (from..end).contains(&i))).await;
                end = from;
            }
            if chunk > 1 || self.steps.len() == before {
                chunk /= 2;
            }
        }
    }

    async fn remove_a_pair(&mut self) -> bool {
        for second in (1..self.steps.len()).rev() {
            for first in (0..second).rev() {
                if self.runs == 0 {
                    return false;
                }
                if self.accept(self.without(|i| i == first || i == second)).await {
                    return true;
                }
            }
        }
        false
    }

    async fn simplify(&mut self, simpler: &impl Fn(&T) -> Vec<T>) -> bool {
        let mut any = false;
        for i in 0..self.steps.len() {
            // An accepted candidate has its own candidates. Those before it were refused already.
            let mut refused = 0;
            while let Some(candidate) = simpler(&self.steps[i]).into_iter().nth(refused) {
                let mut steps = self.steps.clone();
                steps[i] = candidate;
                match self.accept(steps).await {
                    true => any = true,
                    false => refused += 1,
                }
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_failing_step_is_found_among_hundreds() {
        let mut runs = 0;
        let found = shrink(
            (0..700).collect(),
            400,
            |_| Vec::new(),
            async |steps: &[i32]| {
                runs += 1;
                steps.contains(&421)
            },
        );
        assert_eq!(found.await, [421]);
        assert!(runs < 100, "{runs} runs");
    }

    #[tokio::test]
    async fn steps_that_fail_only_together_are_kept_in_order() {
        let fails = |steps: &[i32]| {
            let at = |step| steps.iter().position(|other| *other == step);
            at(3).is_some_and(|first| {
                at(250).is_some_and(|second| at(499).is_some_and(|third| first < second && second < third))
            })
        };
        let found = shrink((0..500).collect(), 400, |_| Vec::new(), async |steps: &[i32]| fails(steps)).await;
        assert_eq!(found, [3, 250, 499]);
    }

    #[tokio::test]
    async fn pairs_that_can_only_be_removed_together_are_removed() {
        let balanced = async |steps: &[i32]| steps.iter().sum::<i32>() == 0 && steps.contains(&7);
        let found = shrink(vec![1, -1, 7, 2, -2, -7, 3, -3], 400, |_| Vec::new(), balanced).await;
        assert_eq!(found, [7, -7]);
    }

    #[tokio::test]
    async fn remaining_steps_are_simplified_as_far_as_possible() {
        let simpler = |step: &i32| if *step > 0 { vec![step / 2, step - 1] } else { Vec::new() };
        let found = shrink(vec![3, 900, 5], 400, simpler, async |steps: &[i32]| steps.iter().any(|n| *n >= 13)).await;
        assert_eq!(found, [13]);
    }

    #[tokio::test]
    async fn the_number_of_runs_is_bounded() {
        let mut runs = 0;
        shrink(
            (0..1000).collect(),
            50,
            |_| Vec::new(),
            async |_: &[i32]| {
                runs += 1;
                false
            },
        )
        .await;
        assert_eq!(runs, 50);
    }
}
