package nvme

// Held returns what a queue holds for tests: outstanding commands, and bytes charged.
func (q *Queue) Held() (commands, bytes int) { return q.active, q.memory }
