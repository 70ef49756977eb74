"""The shop's tables, with the types that real shops use; valid on MySQL and on MariaDB.

Order ids begin below 2^63 and grow beyond it, which detects a decoder that reads BIGINT UNSIGNED as signed.
"""

from __future__ import annotations

CUSTOMERS = """
CREATE TABLE customers (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  public_id BINARY(16) NOT NULL,
  email VARCHAR(190) NOT NULL,
  name VARCHAR(120) CHARACTER SET utf8mb4 NULL,
  legacy_name VARCHAR(60) CHARACTER SET latin1 NULL,
  tier ENUM('new', 'silver', 'gold', 'très chic') NULL,
  interests SET('books', 'garden', 'music', 'sport', 'toys & games') NULL,
  newsletter BIT(1) NULL,
  consents BIT(12) NULL,
  birthday DATE NULL,
  balance DECIMAL(12,2) NULL,
  preferences JSON NULL,
  avatar BLOB NULL,
  created_at DATETIME(6) NULL,
  seen_at TIMESTAMP NULL DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
"""

PRODUCTS = """
CREATE TABLE products (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  sku VARCHAR(32) CHARACTER SET ascii NOT NULL,
  title VARCHAR(200) NULL,
  description TEXT NULL,
  legacy_text TEXT CHARACTER SET latin1 NULL,
  price DECIMAL(10,2) NULL,
  weight FLOAT NULL,
  volume DOUBLE NULL,
  attributes JSON NULL,
  picture MEDIUMBLOB NULL,
  on_sale TINYINT(1) NULL,
  launched YEAR NULL,
  updated_at TIMESTAMP(3) NULL DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
"""

ORDERS = """
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  customer_id BIGINT UNSIGNED NULL,
  status ENUM('open', 'paid', 'sent', 'returned', 'cancelled') NULL,
  total DECIMAL(14,2) NULL,
  placed_at DATETIME(6) NULL,
  paid_at DATETIME NULL,
  deliver_on DATE NULL,
  deliver_after TIME NULL,
  handling TIME(6) NULL,
  channel VARCHAR(40) CHARACTER SET latin1 NULL,
  note TEXT NULL,
  updated_at TIMESTAMP(6) NULL DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
"""

ORDER_ITEMS = """
CREATE TABLE order_items (
  order_id BIGINT UNSIGNED NOT NULL,
  line_no SMALLINT UNSIGNED NOT NULL,
  product_id INT UNSIGNED NULL,
  quantity MEDIUMINT UNSIGNED NULL,
  price DECIMAL(10,2) NULL,
  discount DECIMAL(5,4) NULL,
  points MEDIUMINT NULL,
  gift_code CHAR(8) NULL,
  remark TINYTEXT NULL,
  PRIMARY KEY (order_id, line_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
"""

PAYMENTS = """
CREATE TABLE payments (
  id BIGINT NOT NULL PRIMARY KEY,
  order_id BIGINT UNSIGNED NULL,
  method ENUM('card', 'transfer', 'cash', 'voucher') NULL,
  amount DECIMAL(20,4) NULL,
  rate DOUBLE NULL,
  fee FLOAT NULL,
  receipt VARBINARY(64) NULL,
  answer JSON NULL,
  settled_on DATE NULL,
  created_at TIMESTAMP(6) NULL DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
"""

INVENTORY = """
CREATE TABLE inventory (
  sku VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  warehouse TINYINT UNSIGNED NOT NULL,
  on_hand INT NULL,
  reserved SMALLINT NULL,
  reorder_at TINYINT NULL,
  capacity INT UNSIGNED NULL,
  shelf CHAR(12) CHARACTER SET latin1 NULL,
  counted_at DATETIME(3) NULL,
  PRIMARY KEY (sku, warehouse)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
"""

PAGE_VIEWS = """
CREATE TABLE page_views (
  visitor BINARY(8) NULL,
  url VARCHAR(300) NULL,
  referrer TEXT NULL,
  status SMALLINT NULL,
  duration TIME(3) NULL,
  viewed_at TIMESTAMP(3) NULL DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
"""

TABLES: dict[str, str] = {
    "customers": CUSTOMERS,
    "products": PRODUCTS,
    "orders": ORDERS,
    "order_items": ORDER_ITEMS,
    "payments": PAYMENTS,
    "inventory": INVENTORY,
    "page_views": PAGE_VIEWS,
}
"""CREATE statements by name; only ``page_views`` has no primary key."""
