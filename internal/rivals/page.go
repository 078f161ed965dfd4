package main

func (t *table) page(dir string) error { return nil }
