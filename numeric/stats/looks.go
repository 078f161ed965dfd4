package stats

// firstLook is the smallest number of replicates at an interim look: fewer estimate the spread too poorly.
const firstLook = 5

// Looks returns the numbers of replicates at which a study of up to most is analysed and may stop: 5, 7, 10, 14, 20,
// ... and most. Each of K looks is tested at 1/K of the level (Slud and Wei, JASA 77(380), 1982).
func Looks(most int) []int {
	// If each of K looks is tested at 1/K of the level, the error rate over all of them stays below the level, however
	// the looks are correlated: alpha spending (Lan and DeMets, Biometrika 70(3), 1983) in fixed amounts.
	var out []int
	for n, next := firstLook, 7; n > 0 && n < most; n, next = next, 2*n {
		out = append(out, n)
	}
	return append(out, most)
}
