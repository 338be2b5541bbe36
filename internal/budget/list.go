package budget

// List returns the built-in price list.
func List() Prices { return Prices{} }
