package units

// Parsers that other packages reach through UnmarshalText.
var (
	ParseChange = parseChange
	ParseDays   = parseDays
	ParseMoney  = parseMoney
)
