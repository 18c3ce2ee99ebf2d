"""Classes of Isaac Sim under robots and links, which 2.x had here."""
