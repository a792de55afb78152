helper = 1
