package ssd

func (d *Drive) precondition() error { return nil }
