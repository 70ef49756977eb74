"""Ways to servers in private networks: SSH servers and SOCKS proxies."""
