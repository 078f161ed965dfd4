package rng

// The constants of MRG32k3a, the combined multiple recursive generator of L'Ecuyer (Operations Research 47(1), 1999):
// two recurrences of order three, x[n] = mrgA1[0] x[n-2] - mrgA1[1] x[n-3] mod mrgM1 and y[n] = mrgA2[0] y[n-1] -
// mrgA2[1] y[n-3] mod mrgM2, whose difference is a number of 32 bits, and mrgNorm what that is multiplied by.
// NS3Draws and MQSim are the two peers' uses of it.
const (
	mrgM1   = 4294967087
	mrgM2   = 4294944443
	mrgA12  = 1403580
	mrgA13  = 810728
	mrgA21  = 527612
	mrgA23  = 1370589
	mrgNorm = 2.328306549295727688e-10
)
