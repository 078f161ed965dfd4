package ssd

// FailPrograms has the programs of pages fail of which fails says so.
func (d *Drive) FailPrograms(fails func(page uint32) bool) { d.programFails = fails }
